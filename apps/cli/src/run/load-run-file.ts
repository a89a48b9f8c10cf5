/** From a run file on disk to the self-contained text that is published. */

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { inlineFiles, parseRunFile, type RunConfig } from "@hone/config";
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
