/**
 * Checkpoints as Hugging Face folders.
 *
 *   config.json             the model's shape
 *   model.safetensors       the weights; or shards with model.safetensors.index.json
 *   tokenizer.json ...      companion files, unchanged: tokenizer, chat template, generation defaults
 *   optimizer.safetensors   see optimizer-file.ts
 *
 * In memory all numbers are float32. Weights and optimizer state that were written as float32 are read back with the same
 * bits. The caller syncs the folder to the disk and renames it to commit it.
 */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { configFromSpec, listParameters, type ModelConfig, type ModelSpec, specFromConfig } from "@hone/nn";
import {
  type CheckpointLayout,
  combineDigests,
  INDEX_FILE,
  indexOf,
  mainType,
  singleFileLayout,
} from "./checkpoint-layout.ts";
import { inspectWeights, parametersByTensor, type ReadOptions, readWeights } from "./checkpoint-weights.ts";
import { CheckpointError, quoteStart } from "./errors.ts";
import { saveOptimizer } from "./optimizer-file.ts";
import type { AdamWState } from "./optimizer-state.ts";
import { readCompanion } from "./read-companion.ts";
import type { WeightWriter } from "./safetensors/header.ts";
import { weightWriter } from "./safetensors/writer.ts";

/** Contents of the files that accompany a model's weights, by file name. */
export type Companions = Readonly<Record<string, string | Uint8Array>>;

/** Details of the checkpoint from which a model was loaded, so that an export can look the same. */
export interface CheckpointOrigin {
  readonly config: ModelConfig;
  readonly layout: CheckpointLayout;
}

/** The contents of a model's folder. */
export interface ModelState {
  readonly spec: ModelSpec;
  readonly weights: Record<string, Float32Array>;
  readonly companions: Companions;
  /** Absent = the layout that Hone writes by default, one float32 file. */
  readonly origin?: CheckpointOrigin;
}

/** Digest and size of what was written. */
export interface SavedModel {
  /** SHA-256 of the weights' file, hexadecimal; of several files, that of their digests. */
  readonly digest: string;
  /** Size of all files written. */
  readonly bytes: number;
}

const CONFIG_FILE = "config.json";
const COMPANION_FILES = [
  "added_tokens.json",
  "chat_template.jinja",
  "generation_config.json",
  "merges.txt",
  "special_tokens_map.json",
  "tokenizer.json",
  "tokenizer.model",
  "tokenizer_config.json",
  "vocab.json",
];
/** The names that `transformers` uses in config.json. */
const DTYPE_NAMES = { F32: "float32", F16: "float16", BF16: "bfloat16" } as const;

/** Writes a model, and the optimizer if one is given, into a folder, which is created if it is missing. */
export async function saveCheckpoint(
  folder: string,
  model: ModelState,
  optimizer?: AdamWState,
): Promise<SavedModel> {
  const saved = await saveCheckpointWith(folder, model, weightWriter(model.weights));
  if (optimizer === undefined) return saved;
  const optimizerBytes = await saveOptimizer(folder, listParameters(model.spec), optimizer);
  return { ...saved, bytes: saved.bytes + optimizerBytes };
}

/** Does the same for weights that this process does not hold. @param writeWeights writes the files of weights. */
export async function saveCheckpointWith(
  folder: string,
  { spec, companions, origin }: Omit<ModelState, "weights">,
  writeWeights: WeightWriter,
): Promise<SavedModel> {
  await mkdir(folder, { recursive: true });
  const parameters = parametersByTensor(spec);
  const { config, layout } = origin ?? {
    config: configFromSpec(spec),
    layout: singleFileLayout([...parameters.keys()]),
  };
  const files = layout.shards.map(({ file, tensors }) => ({
    path: path.join(folder, file),
    metadata: { format: "pt" },
    tensors: tensors.map(({ name, type }) => {
      const { name: parameter, shape } = parameters.get(name)!;
      return { name, type, shape, parameter };
    }),
  }));
  const written = await writeWeights(files);
  const digests = new Map(layout.shards.map(({ file }, i) => [file, written[i]!.digest]));
  let bytes = written.reduce((sum, file) => sum + file.bytes, 0);
  const texts: [string, string | Uint8Array | undefined][] = [
    [CONFIG_FILE, `${JSON.stringify(withDtype(config, layout), null, 2)}\n`],
    [INDEX_FILE, indexOf(layout, bytes)],
    ...Object.entries(companions),
  ];
  for (const [name, content] of texts) {
    if (content !== undefined) bytes += await write(path.join(folder, name), content);
  }
  return { digest: combineDigests(digests), bytes };
}

/** A model that was read, with what an export needs to look like its folder. */
export type LoadedModel = Required<ModelState> & {
  /** SHA-256 of the weights' file, hexadecimal; of several files, that of their digests. */
  readonly digest: string;
};

/**
 * Reads a model.
 * @throws CheckpointError that names file and tensor if something is missing, damaged, unexpected or of the wrong shape.
 */
export async function loadModel(folder: string, options?: ReadOptions): Promise<LoadedModel> {
  const config = await loadConfig(folder);
  const spec = specFromConfig(config);
  const { weights, layout, digest } = await readWeights(folder, spec, options);
  return { spec, weights, companions: await loadCompanions(folder), origin: { config, layout }, digest };
}

/**
 * Reads everything of a model but its weights; of the weight files, only the headers are read and checked.
 * @throws CheckpointError as {@link loadModel} does, except for damage inside the values.
 */
export async function inspectModel(folder: string): Promise<Omit<LoadedModel, "weights" | "digest">> {
  const config = await loadConfig(folder);
  const spec = specFromConfig(config);
  const layout = await inspectWeights(folder, spec);
  return { spec, companions: await loadCompanions(folder), origin: { config, layout } };
}

/** Reads config.json. @throws CheckpointError if it is missing or not a JSON object. */
async function loadConfig(folder: string): Promise<ModelConfig> {
  const file = path.join(folder, CONFIG_FILE);
  const text = (await readCompanion(file)).toString("utf8");
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch (cause) {
    throw new CheckpointError(file, `the file must be JSON, but begins with ${quoteStart(text)}`, { cause });
  }
  if (typeof config === "object" && config !== null && !Array.isArray(config)) return config as ModelConfig;
  throw new CheckpointError(file, `the file must be a JSON object, but begins with ${quoteStart(text)}`);
}

/** The configuration, with only the stored type changed: `dtype`, or `torch_dtype` in older versions. */
function withDtype(config: ModelConfig, layout: CheckpointLayout): ModelConfig {
  const key = "dtype" in config ? "dtype" : "torch_dtype";
  return { ...config, [key]: DTYPE_NAMES[mainType(layout)] };
}

/** Reads the files that accompany the weights. */
export async function loadCompanions(folder: string): Promise<Companions> {
  const names = await readdir(folder);
  const companions: Record<string, string | Uint8Array> = {};
  for (const name of COMPANION_FILES) {
    if (!names.includes(name)) continue;
    const bytes = await readCompanion(path.join(folder, name));
    companions[name] = name.endsWith(".model") ? bytes : bytes.toString("utf8");
  }
  return companions;
}

async function write(file: string, content: Uint8Array | string): Promise<number> {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  await writeFile(file, bytes);
  return bytes.length;
}
