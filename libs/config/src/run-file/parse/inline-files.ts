/** Making a run file self-contained: what it names by path is read and put in its place. */

import { readFile, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { describeError } from "@hone/core";
import { ConfigError } from "../../errors.ts";
import { problemMessage } from "../../problems.ts";
import type { RunConfig } from "../schema/schema.ts";
import { parseYaml, textFromBytes } from "./parse-text.ts";

/** Files that make a tokenizer; the first is required. */
export const TOKENIZER_FILES = [
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "chat_template.jinja",
] as const;

const MAX_FILE_BYTES = 12 * 1024 * 1024;

/**
 * Reads `agent.configPath` and `model.init.tokenizer` and inlines them. A model's folder is too large for that: its
 * path becomes absolute where there is one.
 * @param baseFolder paths resolve below it and may not leave it.
 * @throws {ConfigError} naming the key when a file is missing, too large, outside the folder or broken.
 */
export async function inlineFiles(run: RunConfig, baseFolder: string): Promise<RunConfig> {
  const { configPath, ...agent } = run.agent;
  return {
    ...run,
    agent: configPath === undefined ? agent : { ...agent, config: await agentConfig(configPath, baseFolder) },
    model: await inlineModel(run.model, baseFolder),
  };
}

async function inlineModel(model: RunConfig["model"], baseFolder: string): Promise<RunConfig["model"]> {
  if ("path" in model) {
    const folder = path.resolve(baseFolder, model.path);
    // Who reads models says which folders count; whether there is one outside of this folder is not found out here.
    const isFolder = !isBelow(baseFolder, folder) || (await exists(folder));
    return isFolder ? { ...model, path: folder } : model;
  }
  const { tokenizer } = model.init;
  if (typeof tokenizer !== "string") return model;
  return { init: { ...model.init, tokenizer: { files: await tokenizerFiles(tokenizer, baseFolder) } } };
}

async function agentConfig(configPath: string, baseFolder: string): Promise<Record<string, unknown>> {
  return readObjectBelow(baseFolder, configPath, "agent.configPath");
}

/**
 * Reads a YAML or JSON file that holds an object.
 * @param key names it in errors, such as `agent.configPath`.
 * @throws {ConfigError} when it is missing, too large, outside the folder, also by a link, or holds something else.
 */
export async function readObjectBelow(
  baseFolder: string,
  configPath: string,
  key: string,
): Promise<Record<string, unknown>> {
  const parsed = parseYaml(await readBelow(baseFolder, configPath, key), configPath);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw fileError(key, configPath, "a YAML file that holds an object");
  }
  return parsed as Record<string, unknown>;
}

async function tokenizerFiles(file: string, baseFolder: string): Promise<Record<string, string>> {
  const key = "model.init.tokenizer";
  const folder = path.basename(file) === TOKENIZER_FILES[0] ? path.dirname(file) : file;
  const files: Record<string, string> = {};
  for (const name of TOKENIZER_FILES) {
    const isRequired = name === TOKENIZER_FILES[0];
    const relative = path.join(folder, name);
    if (!isRequired && !(await exists(path.resolve(baseFolder, relative)))) continue;
    files[name] = await readBelow(baseFolder, relative, key);
  }
  return files;
}

async function readBelow(baseFolder: string, relative: string, key: string): Promise<string> {
  const full = await fileBelow(baseFolder, relative, key);
  try {
    const { size } = await stat(full);
    if (size > MAX_FILE_BYTES) throw fileError(key, relative, `a file of at most ${MAX_FILE_BYTES} bytes`);
    return textFromBytes(await readFile(full), relative);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw fileError(key, relative, `a file that can be read (${describeError(cause)})`, cause);
  }
}

/**
 * The real path of a file that a run or a row names.
 * @throws {ConfigError} when it is not there, or leads out of the folder, also by a link.
 */
export async function fileBelow(baseFolder: string, relative: string, key: string): Promise<string> {
  const full = path.resolve(baseFolder, relative);
  // Before the disk is asked, so that the answer does not tell what lies outside.
  if (!isBelow(baseFolder, full)) throw fileError(key, relative, `a path below ${baseFolder}`);
  try {
    const [root, real] = await Promise.all([realpath(baseFolder), realpath(full)]);
    if (isBelow(root, real)) return real;
  } catch (cause) {
    throw fileError(key, relative, `a file that can be read (${describeError(cause)})`, cause);
  }
  throw fileError(key, relative, `a path below ${baseFolder}`);
}

function isBelow(folder: string, file: string): boolean {
  const relative = path.relative(folder, file);
  return relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}

function fileError(key: string, value: string, allowed: string, cause?: unknown): ConfigError {
  return new ConfigError(
    "the run file",
    [{ key, value, allowed, message: problemMessage(key, value, allowed) }],
    { cause },
  );
}
