/**
 * The folder that a server is told to read. vLLM and SGLang take every `*.safetensors` of a folder for weights, and a run's
 * state has its optimizer there: such a folder is shown to them through links to what belongs to the model.
 */

import { mkdir, readdir, readFile, rm, symlink } from "node:fs/promises";
import path from "node:path";

const WEIGHTS_SUFFIX = ".safetensors";
const WHOLE_FILES = ["model.safetensors", "adapter_model.safetensors"];
const INDEX_FILE = "model.safetensors.index.json";

/**
 * @param root where folders of links are made; the server sees them under the same path.
 * @param label names the folder there.
 * @returns the folder itself where it holds nothing else.
 */
export async function servedFolder(folder: string, root: string, label: string): Promise<string> {
  const entries = await readdir(folder, { withFileTypes: true });
  const own = await ownFiles(
    folder,
    entries.map(({ name }) => name),
  );
  const files = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name);
  const served = files.filter((name) => !name.endsWith(WEIGHTS_SUFFIX) || own.has(name));
  if (served.length === files.length) return folder;
  const view = path.join(root, label);
  await rm(view, { recursive: true, force: true });
  await mkdir(view, { recursive: true });
  await Promise.all(served.map((name) => symlink(path.join(folder, name), path.join(view, name))));
  return view;
}

/** Removes all folders of links but those of these labels. */
export async function removeViews(root: string, kept: readonly string[]): Promise<void> {
  const labels = await readdir(root).catch((): string[] => []);
  const old = labels.filter((label) => !kept.includes(label));
  await Promise.all(old.map((label) => rm(path.join(root, label), { recursive: true, force: true })));
}

async function ownFiles(folder: string, names: readonly string[]): Promise<Set<string>> {
  if (!names.includes(INDEX_FILE)) return new Set(WHOLE_FILES);
  const index = JSON.parse(await readFile(path.join(folder, INDEX_FILE), "utf8")) as {
    readonly weight_map: Readonly<Record<string, string>>;
  };
  return new Set(Object.values(index.weight_map));
}
