/** Makes a run file self-contained: replaces the paths in it by the contents of their files. */

import { readFile, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { describeError } from "@hone/core";
import { ConfigError } from "../../errors.ts";
import { pathText, problemMessage } from "../../problems.ts";
import type { RunConfig } from "../schema/schema.ts";
import type { TaskSource } from "../schema/sources.ts";
import { parseYaml, textFromBytes } from "./parse-text.ts";

/** The files of a tokenizer; the first is required. */
export const TOKENIZER_FILES = [
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "chat_template.jinja",
] as const;

const MAX_FILE_BYTES = 12 * 1024 * 1024;

/**
 * Reads the files of `agent.configPath` and `model.init.tokenizer` and inlines them. A model's folder is too large for that;
 * its path becomes absolute if the folder exists.
 * @param baseFolder the folder that paths are relative to and must lie in.
 * @throws {ConfigError} that names the key, when a file is missing, too large, outside the folder or broken.
 */
export async function inlineFiles(run: RunConfig, baseFolder: string): Promise<RunConfig> {
  return {
    ...run,
    agent: await inlineAgent(run.agent, baseFolder, ["agent"]),
    dataset: await inlineParts(run.dataset, baseFolder),
    model: await inlineModel(run.model, baseFolder),
    ...(await inlineOtherModels(run, baseFolder)),
  };
}

async function inlineAgent<T extends RunConfig["agent"]>(
  { configPath, ...agent }: T,
  baseFolder: string,
  path: readonly PropertyKey[],
): Promise<Omit<T, "configPath">> {
  if (configPath === undefined) return agent;
  const config = await readObjectBelow(baseFolder, configPath, pathText([...path, "configPath"]));
  return { ...agent, config };
}

/** The agents of the parts of mixes. */
async function inlineParts(dataset: RunConfig["dataset"], baseFolder: string): Promise<RunConfig["dataset"]> {
  const inlined = async <T extends TaskSource | undefined>(source: T, split: string): Promise<T> => {
    if (source?.source !== "mix") return source;
    const parts = source.parts.map(async (part, index) => {
      if (part.agent === undefined) return part;
      const path = ["dataset", split, "parts", index, "agent"];
      return { ...part, agent: await inlineAgent(part.agent, baseFolder, path) };
    });
    return { ...source, parts: await Promise.all(parts) };
  };
  const { train, eval: evaluation, ...rest } = dataset;
  return {
    ...rest,
    train: await inlined(train, "train"),
    ...(evaluation !== undefined && { eval: await inlined(evaluation, "eval") }),
  };
}

async function inlineOtherModels(
  { algorithm, trainer }: RunConfig,
  baseFolder: string,
): Promise<Pick<RunConfig, "algorithm" | "trainer">> {
  const { distillation } = algorithm;
  const { critic } = trainer;
  const placed = async <T extends { readonly model?: PlaceOfModel | undefined }>(of: T): Promise<T> =>
    of.model === undefined ? of : { ...of, model: await placeModel(of.model, baseFolder) };
  return {
    algorithm:
      distillation === undefined
        ? algorithm
        : {
            ...algorithm,
            distillation: { ...distillation, teachers: await Promise.all(distillation.teachers.map(placed)) },
          },
    trainer: critic === undefined ? trainer : { ...trainer, critic: await placed(critic) },
  };
}

interface PlaceOfModel {
  readonly path: string;
}

/** The service that reads the model decides which folders are allowed, so this does not check whether one exists outside. */
async function placeModel<T extends PlaceOfModel>(model: T, baseFolder: string): Promise<T> {
  const folder = path.resolve(baseFolder, model.path);
  const isFolder = !isBelow(baseFolder, folder) || (await exists(folder));
  return isFolder ? { ...model, path: folder } : model;
}

async function inlineModel(model: RunConfig["model"], baseFolder: string): Promise<RunConfig["model"]> {
  if ("path" in model) return placeModel(model, baseFolder);
  const { tokenizer } = model.init;
  if (typeof tokenizer !== "string") return model;
  return { init: { ...model.init, tokenizer: { files: await tokenizerFiles(tokenizer, baseFolder) } } };
}

/**
 * Reads a YAML or JSON file that holds an object.
 * @param key names the file in errors, such as `agent.configPath`.
 * @throws {ConfigError} when the file is missing, too large, outside the folder (also through a link) or holds something else.
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
 * @returns the real path of a file that a run or a row names.
 * @throws {ConfigError} when the file does not exist or lies outside the folder, also through a link.
 */
export async function fileBelow(baseFolder: string, relative: string, key: string): Promise<string> {
  const full = path.resolve(baseFolder, relative);
  // This comes before the disk is read, so that the answer does not reveal what exists outside.
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
