/**
 * Makes the folder that a server reads. vLLM and SGLang load every `*.safetensors` of a folder as weights, and a run's
 * state also has its optimizer there. So they get a folder of links to the files that belong to the model.
 */

import { mkdir, readdir, readFile, rm, symlink } from "node:fs/promises";
import path from "node:path";

const WEIGHTS_SUFFIX = ".safetensors";
const WHOLE_FILES = ["model.safetensors", "adapter_model.safetensors"];
const INDEX_FILE = "model.safetensors.index.json";

/**
 * @param root the folder for folders of links; the server sees it under the same path.
 * @param label name of the folder of links.
 * @returns the folder itself if all of its files belong to the model.
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

/** Removes all folders of links except those of these labels. */
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
