/**
 * Checkpoints as Hugging Face folders.
 *
 *   config.json             the model's shape, architecture Qwen3ForCausalLM
 *   model.safetensors       weights, float32
 *   tokenizer.json ...      the companions: tokenizer, chat template, generation defaults, as they were given
 *   optimizer.safetensors   moments `m.*` and `v.*`; the number of updates in its metadata
 *
 * Weights and optimizer come back bit by bit. Syncing the folder to the disk, and renaming it as a commit, is the
 * caller's.
 */
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { configFromSpec, listParameters, type ModelSpec, parameterSize, specFromConfig } from "@hone/nn";
import type { AdamWState } from "./adamw.ts";
import { CheckpointError } from "./errors.ts";
import { decodeSafeTensors, encodeSafeTensors, type SafeTensor } from "./safetensors.ts";

/** Texts that belong to a model beside its weights, by file name. */
export type Companions = Readonly<Record<string, string>>;

/** A model as a folder holds it. */
export interface ModelState {
  readonly spec: ModelSpec;
  readonly weights: Record<string, Float32Array>;
  readonly companions: Companions;
}

/** What was written. */
export interface SavedModel {
  /** SHA-256 of model.safetensors, hexadecimal. */
  readonly digest: string;
  /** Size of all files written. */
  readonly bytes: number;
}

export const MODEL_FILE = "model.safetensors";
const CONFIG_FILE = "config.json";
const OPTIMIZER_FILE = "optimizer.safetensors";
const COMPANION_FILES = [
  "added_tokens.json",
  "chat_template.jinja",
  "generation_config.json",
  "merges.txt",
  "special_tokens_map.json",
  "tokenizer.json",
  "tokenizer_config.json",
  "vocab.json",
];

/** Writes a model, and the optimizer where one is given, into a folder that is made if missing. */
export async function saveCheckpoint(
  folder: string,
  model: ModelState,
  optimizer?: AdamWState,
): Promise<SavedModel> {
  await mkdir(folder, { recursive: true });
  const parameters = listParameters(model.spec);
  const tensors = (prefix: string, values: Readonly<Record<string, Float32Array>>) =>
    parameters.map(({ name, shape }): [string, SafeTensor] => [
      prefix + name,
      { shape, data: values[name]! },
    ]);
  const modelBytes = encodeSafeTensors(tensors("", model.weights), { format: "pt" });
  const files: [string, Uint8Array | string][] = [
    [CONFIG_FILE, `${JSON.stringify(configFromSpec(model.spec), null, 2)}\n`],
    ...Object.entries(model.companions),
    [MODEL_FILE, modelBytes],
  ];
  if (optimizer !== undefined) {
    const moments = [...tensors("m.", optimizer.m), ...tensors("v.", optimizer.v)];
    files.push([OPTIMIZER_FILE, encodeSafeTensors(moments, { step: String(optimizer.step) })]);
  }
  let bytes = 0;
  for (const [name, content] of files) bytes += await write(path.join(folder, name), content);
  return { digest: sha256(modelBytes), bytes };
}

/** Reads a model. @throws CheckpointError where a file is missing or does not fit the configuration. */
export async function loadModel(folder: string): Promise<ModelState & { digest: string }> {
  const configPath = path.join(folder, CONFIG_FILE);
  const spec = specFromConfig(parseConfig(await read(configPath), configPath));
  const modelPath = path.join(folder, MODEL_FILE);
  const bytes = await read(modelPath);
  const { tensors } = decodeSafeTensors(bytes, modelPath);
  const weights = takeParameters(spec, tensors, "", modelPath);
  return { spec, weights, companions: await loadCompanions(folder), digest: sha256(bytes) };
}

/** Reads the optimizer's state that belongs to a model of this shape; undefined where the folder has none. */
export async function loadOptimizer(folder: string, spec: ModelSpec): Promise<AdamWState | undefined> {
  const names = await readdir(folder);
  if (!names.includes(OPTIMIZER_FILE)) return undefined;
  const file = path.join(folder, OPTIMIZER_FILE);
  const { tensors, metadata } = decodeSafeTensors(await read(file), file);
  const step = Number(metadata.step);
  if (!Number.isInteger(step) || step < 0) {
    throw new CheckpointError(file, "its metadata counts the updates", String(metadata.step));
  }
  return { step, m: takeParameters(spec, tensors, "m.", file), v: takeParameters(spec, tensors, "v.", file) };
}

function takeParameters(
  spec: ModelSpec,
  tensors: ReadonlyMap<string, SafeTensor>,
  prefix: string,
  file: string,
): Record<string, Float32Array> {
  const taken: Record<string, Float32Array> = {};
  for (const parameter of listParameters(spec)) {
    const tensor = tensors.get(prefix + parameter.name);
    const shape = `[${parameter.shape.join(", ")}]`;
    if (tensor === undefined || tensor.shape.join() !== parameter.shape.join()) {
      const current = tensor === undefined ? "nothing" : `[${tensor.shape.join(", ")}]`;
      throw new CheckpointError(file, `it holds ${prefix}${parameter.name} of shape ${shape}`, current);
    }
    if (tensor.data.length !== parameterSize(parameter)) {
      throw new CheckpointError(file, `${parameter.name} is whole`, `${tensor.data.length} values`);
    }
    taken[parameter.name] = tensor.data;
  }
  return taken;
}

async function loadCompanions(folder: string): Promise<Companions> {
  const names = await readdir(folder);
  const companions: Record<string, string> = {};
  for (const name of COMPANION_FILES) {
    if (names.includes(name)) companions[name] = await readFile(path.join(folder, name), "utf8");
  }
  return companions;
}

function parseConfig(bytes: Uint8Array, file: string): Record<string, unknown> {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8")) as Record<string, unknown>;
  } catch (cause) {
    throw new CheckpointError(file, "it is JSON", `${bytes.length} bytes`, { cause });
  }
}

async function read(file: string): Promise<Uint8Array> {
  try {
    return await readFile(file);
  } catch (cause) {
    const current = cause instanceof Error ? cause.message : String(cause);
    throw new CheckpointError(file, "it is a readable file", current, { cause });
  }
}

async function write(file: string, content: Uint8Array | string): Promise<number> {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  await writeFile(file, bytes);
  return bytes.length;
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
