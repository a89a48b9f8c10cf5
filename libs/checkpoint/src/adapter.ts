/**
 * Adapters as PEFT folders:
 *
 *   adapter_config.json         rank, alpha, targets, and the base model
 *   adapter_model.safetensors   the adapters' tensors; if Hone wrote it, its metadata has the digest of the base's weights
 *   tokenizer.json ...          the files that accompany the model
 *   optimizer.safetensors       see optimizer-file.ts
 */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import {
  type LoraSpec,
  listAdapterParameters,
  type ModelSpec,
  type ParameterInfo,
  parameterSize,
} from "@hone/nn";
import {
  ADAPTER_CONFIG_FILE,
  type AdapterDescription,
  adapterConfigText,
  parseAdapterConfig,
} from "./adapter-config.ts";
import type { Companions, SavedModel } from "./checkpoint.ts";
import { INDEX_FILE, MODEL_FILE } from "./checkpoint-layout.ts";
import { placesIn, type TensorPlace, type WeightAllocator } from "./checkpoint-weights.ts";
import { CheckpointError } from "./errors.ts";
import { saveOptimizer } from "./optimizer-file.ts";
import type { AdamWState } from "./optimizer-state.ts";
import { readCompanion } from "./read-companion.ts";
import { ElementType } from "./safetensors/element-types.ts";
import type { WeightWriter } from "./safetensors/header.ts";
import { SafeTensorsReader } from "./safetensors/reader.ts";
import { weightWriter } from "./safetensors/writer.ts";

export const ADAPTER_FILE = "adapter_model.safetensors";
const BASE_DIGEST = "base_model_sha256";

/** Adapters, with a description of their base model. */
export interface AdapterState extends AdapterDescription {
  /** The specification of the base model. */
  readonly spec: ModelSpec;
  /** Must contain the adapters' tensors; other tensors in it are not written. */
  readonly weights: Readonly<Record<string, Float32Array>>;
  /** Digest of the base model's weights, as `loadModel` returns it. */
  readonly baseDigest: string;
  readonly companions: Companions;
  /** How the tensors are stored; default float32. */
  readonly type?: ElementType | undefined;
}

/** The description of an adapter in its folder. */
export interface InspectedAdapter extends AdapterDescription {
  /** Undefined if the file does not state it. */
  readonly baseDigest: string | undefined;
}

/** Whether a folder holds an adapter and no complete model. */
export async function isAdapterFolder(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch((): string[] => []);
  return names.includes(ADAPTER_CONFIG_FILE) && !names.includes(MODEL_FILE) && !names.includes(INDEX_FILE);
}

/** Writes adapters, and the optimizer if one is given, into a folder, which is created if it is missing. */
export async function saveAdapter(
  folder: string,
  adapter: AdapterState,
  optimizer?: AdamWState,
): Promise<SavedModel> {
  const saved = await saveAdapterWith(folder, adapter, weightWriter(adapter.weights));
  if (optimizer === undefined) return saved;
  const parameters = listAdapterParameters(adapter.spec, adapter.lora);
  return { ...saved, bytes: saved.bytes + (await saveOptimizer(folder, parameters, optimizer)) };
}

/** Does the same for weights that this process does not hold. @param writeWeights writes the file of weights. */
export async function saveAdapterWith(
  folder: string,
  adapter: Omit<AdapterState, "weights">,
  writeWeights: WeightWriter,
): Promise<SavedModel> {
  await mkdir(folder, { recursive: true });
  const { spec, lora, type = ElementType.F32 } = adapter;
  const tensors = listAdapterParameters(spec, lora).map(({ name, shape }) => ({
    name,
    parameter: name,
    shape,
    type,
  }));
  const metadata = { format: "pt", [BASE_DIGEST]: adapter.baseDigest };
  const [written] = await writeWeights([{ path: path.join(folder, ADAPTER_FILE), tensors, metadata }]);
  let bytes = written!.bytes;
  const texts = { [ADAPTER_CONFIG_FILE]: adapterConfigText(adapter), ...adapter.companions };
  for (const [name, content] of Object.entries(texts)) {
    const data = typeof content === "string" ? Buffer.from(content) : content;
    await writeFile(path.join(folder, name), data);
    bytes += data.length;
  }
  return { digest: written!.digest, bytes };
}

/** Reads the description of a folder's adapter, without the weights. @throws CheckpointError */
export async function inspectAdapter(folder: string): Promise<InspectedAdapter> {
  await using reader = await SafeTensorsReader.open(path.join(folder, ADAPTER_FILE));
  return await describeAdapter(folder, reader);
}

/**
 * Reads adapters.
 * @param spec describes the base model.
 * @param allocate makes the array of a tensor, for instance in memory that threads share.
 * @throws CheckpointError that names file and tensor if a tensor is missing, unexpected or of the wrong shape.
 */
export async function loadAdapter(
  folder: string,
  spec: ModelSpec,
  allocate: WeightAllocator = (values) => new Float32Array(values),
): Promise<InspectedAdapter & { weights: Record<string, Float32Array>; digest: string }> {
  await using reader = await SafeTensorsReader.open(path.join(folder, ADAPTER_FILE));
  const described = await describeAdapter(folder, reader);
  const parameters = checkTensors(spec, described.lora, reader);
  const weights: Record<string, Float32Array> = {};
  const digest = await reader.readInto(({ name }) => {
    const values = allocate(parameterSize(parameters.get(name)!), name);
    weights[name] = values;
    return values;
  });
  return { ...described, weights, digest };
}

/** Reads the description of a folder's adapter, and where its tensors are. @throws CheckpointError as {@link loadAdapter} does. */
export async function locateAdapter(
  folder: string,
  spec: ModelSpec,
): Promise<InspectedAdapter & { readonly places: readonly TensorPlace[] }> {
  await using reader = await SafeTensorsReader.open(path.join(folder, ADAPTER_FILE));
  const described = await describeAdapter(folder, reader);
  checkTensors(spec, described.lora, reader);
  return { ...described, places: placesIn(reader, (name) => name) };
}

async function describeAdapter(folder: string, { header }: SafeTensorsReader): Promise<InspectedAdapter> {
  const file = path.join(folder, ADAPTER_CONFIG_FILE);
  const text = (await readCompanion(file)).toString("utf8");
  const described = parseAdapterConfig(
    text,
    file,
    header.entries.map(({ name }) => name),
  );
  return { ...described, baseDigest: header.metadata[BASE_DIGEST] };
}

/** Checks that the file has every tensor exactly once in its right shape, and no other tensor. */
function checkTensors(
  spec: ModelSpec,
  lora: LoraSpec,
  { header, path: file }: SafeTensorsReader,
): ReadonlyMap<string, ParameterInfo> {
  const parameters = new Map(listAdapterParameters(spec, lora).map((each) => [each.name, each]));
  const seen = new Set<string>();
  for (const { name, shape } of header.entries) {
    const parameter = parameters.get(name);
    if (parameter === undefined) {
      const problem = `the file contains tensor ${name}, which adapters of this ${spec.family} model do not have`;
      throw new CheckpointError(file, problem);
    }
    if (shape.join() !== parameter.shape.join()) {
      const rule = `tensor ${name} must have the shape [${parameter.shape.join(", ")}]`;
      throw new CheckpointError(file, `${rule}, but has the shape [${shape.join(", ")}]`);
    }
    seen.add(name);
  }
  for (const { name, shape } of parameters.values()) {
    if (seen.has(name)) continue;
    throw new CheckpointError(
      file,
      `tensor ${name} must have the shape [${shape.join(", ")}], but is missing`,
    );
  }
  return parameters;
}
