/** From a run file on disk to the self-contained text that is published. */

import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { inlineFiles, type ModelInit, parseRunFile, type RunConfig } from "@hone/config";
import { UsageError } from "../errors.ts";

export interface LoadedRun {
  readonly name: string;
  readonly config: RunConfig;
  /** JSON, every default filled in, nothing named by path that the services would have to find. */
  readonly text: string;
}

/**
 * Paths in a run file resolve below its own folder, or below the project folder, as in files published by hand.
 * @throws {UsageError} when the file cannot be read.
 * @throws {ConfigError} with everything that is wrong with it.
 */
export async function loadRunFile(file: string, projectFolder: string): Promise<LoadedRun> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw new UsageError(`Cannot read a run file as it must be there: current value is ${file}`, { cause });
  }
  const parsed = parseRunFile(text);
  const config = await inlineFiles(parsed, baseFolderOf(parsed, dirname(resolve(file)), projectFolder));
  return { name: config.name, config, text: JSON.stringify(config) };
}

/**
 * Whether a run that was taken is this very file's. The trainer keeps a run's tokenizer as files of its state folder
 * and names their folder in the stored configuration: those are compared by content.
 */
export async function isSameRun(
  loaded: LoadedRun,
  configJson: string,
  stateFolder: string,
): Promise<boolean> {
  if (configJson === "") return false;
  const [wanted, stored] = [loaded.text, configJson].map((text) => JSON.parse(text) as RunConfig);
  if (wanted === undefined || stored === undefined) return false;
  if (!isDeepStrictEqual(withoutTokenizer(wanted), withoutTokenizer(stored))) return false;
  // A pretrained model brings its own.
  if ("path" in wanted.model || "path" in stored.model) return true;
  const tokenizers = [wanted.model.init.tokenizer, stored.model.init.tokenizer];
  const [files, kept] = await Promise.all(tokenizers.map((each) => tokenizerFiles(each, stateFolder)));
  return files !== undefined && isDeepStrictEqual(files, kept);
}

function withoutTokenizer({ model, ...run }: RunConfig): unknown {
  if ("path" in model) {
    const { path, revision, dtype } = model;
    return { ...run, model: { path, revision, dtype } };
  }
  const { tokenizer: _, ...init } = model.init;
  return { ...run, init };
}

/** Undefined when the folder is gone. */
async function tokenizerFiles(
  tokenizer: ModelInit["tokenizer"],
  stateFolder: string,
): Promise<Record<string, string> | undefined> {
  if (typeof tokenizer !== "string") return tokenizer.files;
  const folder = resolve(stateFolder, tokenizer);
  if (!existsSync(folder)) return undefined;
  const names = await readdir(folder);
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  return Object.fromEntries(names.map((name, index) => [name, texts[index] ?? ""]));
}

/** One line per thing that is wrong: the sentence names the key, the value and what is allowed. */
export function problemLines(
  problems: readonly { readonly key: string; readonly message: string }[],
): string[] {
  return problems.map(({ key, message }) => (message.includes(key) ? message : `${key}: ${message}`));
}

function baseFolderOf(run: RunConfig, fileFolder: string, projectFolder: string): string {
  const tokenizer = "init" in run.model ? run.model.init.tokenizer : undefined;
  const named = [run.agent.configPath, typeof tokenizer === "string" ? tokenizer : undefined].filter(
    (path) => path !== undefined,
  );
  const isBeside = named.every((path) => existsSync(resolve(fileFolder, path)));
  return isBeside ? fileFolder : projectFolder;
}
