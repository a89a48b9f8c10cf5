/** Reads a run file from disk and makes the self-contained text that is published. */

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { inlineFiles, parseRunFile, type RunConfig } from "@hone/config";
import { UsageError } from "../errors.ts";

export interface LoadedRun {
  readonly name: string;
  readonly config: RunConfig;
  /** JSON with every default filled in and with the contents of the files that it names. */
  readonly configJson: string;
}

/**
 * Paths in a run file are relative to its own folder or, if the files are not there, to the project folder.
 * @throws {UsageError} when the file cannot be read.
 * @throws {ConfigError} that lists everything that is wrong with the file.
 */
export async function loadRunFile(file: string, projectFolder: string): Promise<LoadedRun> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw new UsageError(`the run file ${file} cannot be read`, { cause });
  }
  const parsed = parseRunFile(text);
  const config = await inlineFiles(parsed, baseFolderOf(parsed, dirname(resolve(file)), projectFolder));
  return { name: config.name, config, configJson: JSON.stringify(config) };
}

/** One line per problem, which names the key, the value and what is allowed. */
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
