/** Weights between Hone's parameters and the tensors of a checkpoint's files. */
import path from "node:path";
import {
  HEAD,
  listParameters,
  type ModelSpec,
  type ParameterInfo,
  parameterSize,
  tensorNameOf,
} from "@hone/nn";
import {
  type CheckpointLayout,
  combineDigests,
  layoutOf,
  type OpenShards,
  openShards,
} from "./checkpoint-layout.ts";
import { CheckpointError } from "./errors.ts";
import type { ElementType } from "./safetensors/element-types.ts";
import type { TensorEntry } from "./safetensors/header.ts";
import type { SafeTensorsReader } from "./safetensors/reader.ts";

/** Makes the array of a parameter. */
export type WeightAllocator = (values: number) => Float32Array;

/** The place of a parameter's numbers in a file. */
export interface TensorPlace {
  /** Name of the parameter. */
  readonly name: string;
  /** Path of the file; absolute if the folder is. */
  readonly file: string;
  /** Position of its first byte in the file. */
  readonly begin: number;
  readonly type: ElementType;
  readonly shape: readonly number[];
}

/** Constants that older checkpoints store although they follow from the configuration. */
const DERIVED = /\.rotary_emb\.inv_freq$/;

/** Checks the heads of a folder's files against the model. @returns what they hold. @throws CheckpointError */
export async function inspectWeights(folder: string, spec: ModelSpec): Promise<CheckpointLayout> {
  await using shards = await openShards(folder);
  const parameters = parametersByTensor(spec);
  checkTensors(spec, shards, parameters);
  return layoutOf(shards.readers, (name) => parameters.has(name));
}

/** Where the numbers of every parameter lie, for whoever reads them itself. @throws CheckpointError as {@link readWeights} does, but for damage inside the numbers. */
export async function locateWeights(folder: string, spec: ModelSpec): Promise<TensorPlace[]> {
  await using shards = await openShards(folder);
  const parameters = parametersByTensor(spec);
  checkTensors(spec, shards, parameters);
  return shards.readers.flatMap((reader) => placesIn(reader, (name) => parameters.get(name)?.name));
}

/** The places of the tensors of a file. @param parameterOf undefined = it is not wanted */
export function placesIn(
  { path: file, header }: SafeTensorsReader,
  parameterOf: (tensor: string) => string | undefined,
): TensorPlace[] {
  return header.entries.flatMap(({ name: tensor, begin, type, shape }) => {
    const name = parameterOf(tensor);
    return name === undefined ? [] : [{ name, file, begin, type, shape }];
  });
}

/**
 * Reads all weights of a folder, each file once.
 * @throws CheckpointError naming file and tensor.
 */
export async function readWeights(
  folder: string,
  spec: ModelSpec,
  allocate: WeightAllocator = (values) => new Float32Array(values),
): Promise<{ weights: Record<string, Float32Array>; layout: CheckpointLayout; digest: string }> {
  await using shards = await openShards(folder);
  const parameters = parametersByTensor(spec);
  checkTensors(spec, shards, parameters);
  const weights: Record<string, Float32Array> = {};
  const place = ({ name }: TensorEntry) => {
    const parameter = parameters.get(name);
    if (parameter === undefined) return undefined;
    const values = allocate(parameterSize(parameter));
    weights[parameter.name] = values;
    return values;
  };
  const digest = await digestOfShards(shards, place);
  const layout = layoutOf(shards.readers, (name) => parameters.has(name));
  return { weights, layout, digest };
}

/** The digest that {@link readWeights} gives for a folder, without its numbers. @throws CheckpointError */
export async function digestOfWeights(folder: string): Promise<string> {
  await using shards = await openShards(folder);
  return await digestOfShards(shards, () => undefined);
}

/** Reads all files once. @returns their digest together. */
async function digestOfShards(
  { readers }: OpenShards,
  place: (entry: TensorEntry) => Float32Array | undefined,
): Promise<string> {
  const digests = new Map<string, string>();
  for (const reader of readers) digests.set(path.basename(reader.path), await reader.readInto(place));
  return combineDigests(digests);
}

/** The parameters by their names in the checkpoint, in order. */
export function parametersByTensor(spec: ModelSpec): Map<string, ParameterInfo> {
  return new Map(listParameters(spec).map((each) => [tensorNameOf(spec, each.name), each]));
}

/** Every parameter once and in its shape, and nothing that the model would not use. */
function checkTensors(
  spec: ModelSpec,
  { readers, fileOf }: OpenShards,
  parameters: ReadonlyMap<string, ParameterInfo>,
): void {
  const seen = new Map<string, SafeTensorsReader>();
  for (const reader of readers) {
    for (const { name, shape } of reader.header.entries) {
      const parameter = parameters.get(name);
      if (parameter === undefined) {
        if (isLeftOut(spec, name)) continue;
        throw new CheckpointError(
          reader.path,
          `a ${spec.family} model has no tensor ${name}`,
          "there is one",
        );
      }
      if (shape.join() !== parameter.shape.join()) {
        const rule = `it holds ${name} of shape [${parameter.shape.join(", ")}]`;
        throw new CheckpointError(reader.path, rule, `[${shape.join(", ")}]`);
      }
      if (seen.has(name)) {
        throw new CheckpointError(reader.path, `${name} lies in one file`, `also in ${seen.get(name)!.path}`);
      }
      seen.set(name, reader);
    }
  }
  for (const [name, { shape }] of parameters) {
    if (seen.has(name)) continue;
    throw new CheckpointError(fileOf(name), `it holds ${name} of shape [${shape.join(", ")}]`, "nothing");
  }
}

/** Whether a tensor may stand in a file without being read: it repeats what is known otherwise. */
function isLeftOut(spec: ModelSpec, name: string): boolean {
  return DERIVED.test(name) || (spec.isTied && name === tensorNameOf(spec, HEAD));
}
