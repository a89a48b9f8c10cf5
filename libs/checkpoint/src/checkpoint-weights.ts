/** Reads Hone's parameters from the tensors in a checkpoint's files. */
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
import type { OnTensorRead, SafeTensorsReader } from "./safetensors/reader.ts";

/** Makes the array for a parameter with that many values. */
export type WeightAllocator = (values: number, name: string) => Float32Array;

/** What is done with the weights of a model that is read. */
export interface ReadOptions {
  /** Makes the array of a parameter, for instance in memory that threads share. */
  readonly allocate?: WeightAllocator | undefined;
  /**
   * Takes each parameter as soon as it is read, in the order of the files, and is waited for; it is then not among the weights. Meanwhile
   * the next one is read, so of arrays that are used again there must be two.
   */
  readonly take?: ((name: string, values: Float32Array) => void | Promise<void>) | undefined;
}

/** Where the values of a parameter are in a file. */
export interface TensorPlace {
  /** Name of the parameter. */
  readonly name: string;
  /** Path of the file; absolute if the path of the folder is absolute. */
  readonly file: string;
  /** Position of its first byte in the file. */
  readonly begin: number;
  readonly type: ElementType;
  readonly shape: readonly number[];
}

/** Constants that older checkpoints store although they can be computed from the configuration. */
const DERIVED = /\.rotary_emb\.inv_freq$/;

/** Checks the headers of a folder's files against the model. @returns the layout of the files. @throws CheckpointError */
export async function inspectWeights(folder: string, spec: ModelSpec): Promise<CheckpointLayout> {
  await using shards = await openShards(folder);
  const parameters = parametersByTensor(spec);
  checkTensors(spec, shards, parameters);
  return layoutOf(shards.readers, (name) => parameters.has(name));
}

/**
 * Where the values of every parameter are, for callers that read them themselves.
 * @throws CheckpointError as {@link readWeights} does, except for damage inside the values, which are not read.
 */
export async function locateWeights(folder: string, spec: ModelSpec): Promise<TensorPlace[]> {
  await using shards = await openShards(folder);
  const parameters = parametersByTensor(spec);
  checkTensors(spec, shards, parameters);
  return shards.readers.flatMap((reader) => placesIn(reader, (name) => parameters.get(name)?.name));
}

/** Where the tensors of a file are. @param parameterOf the parameter of a tensor; undefined = the tensor is not wanted */
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
 * @throws CheckpointError that names file and tensor.
 */
export async function readWeights(
  folder: string,
  spec: ModelSpec,
  { allocate = (values) => new Float32Array(values), take }: ReadOptions = {},
): Promise<{ weights: Record<string, Float32Array>; layout: CheckpointLayout; digest: string }> {
  await using shards = await openShards(folder);
  const parameters = parametersByTensor(spec);
  checkTensors(spec, shards, parameters);
  const weights: Record<string, Float32Array> = {};
  const place = ({ name }: TensorEntry) => {
    const parameter = parameters.get(name);
    if (parameter === undefined) return undefined;
    const values = allocate(parameterSize(parameter), parameter.name);
    if (take === undefined) weights[parameter.name] = values;
    return values;
  };
  const onRead =
    take && (({ name }: TensorEntry, values: Float32Array) => take(parameters.get(name)!.name, values));
  const digest = await digestOfShards(shards, place, onRead);
  const layout = layoutOf(shards.readers, (name) => parameters.has(name));
  return { weights, layout, digest };
}

/** The digest that {@link readWeights} returns for a folder, without keeping the weights. @throws CheckpointError */
export async function digestOfWeights(folder: string): Promise<string> {
  await using shards = await openShards(folder);
  return await digestOfShards(shards, () => undefined);
}

/** Reads all files once. @returns their combined digest. */
async function digestOfShards(
  { readers }: OpenShards,
  place: (entry: TensorEntry) => Float32Array | undefined,
  onRead?: OnTensorRead,
): Promise<string> {
  const digests = new Map<string, string>();
  for (const reader of readers) digests.set(path.basename(reader.path), await reader.readInto(place, onRead));
  return combineDigests(digests);
}

/** The parameters in order, by their names in the checkpoint. */
export function parametersByTensor(spec: ModelSpec): Map<string, ParameterInfo> {
  return new Map(listParameters(spec).map((each) => [tensorNameOf(spec, each.name), each]));
}

/** Checks that the files have every parameter exactly once in its right shape, and no tensor that the model does not use. */
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
        const problem = `the file contains tensor ${name}, which this ${spec.family} model does not have`;
        throw new CheckpointError(reader.path, problem);
      }
      if (shape.join() !== parameter.shape.join()) {
        const rule = `tensor ${name} must have the shape [${parameter.shape.join(", ")}]`;
        throw new CheckpointError(reader.path, `${rule}, but has the shape [${shape.join(", ")}]`);
      }
      if (seen.has(name)) {
        const other = seen.get(name)!.path;
        throw new CheckpointError(
          reader.path,
          `tensor ${name} must be in one file only, but is also in ${other}`,
        );
      }
      seen.set(name, reader);
    }
  }
  for (const [name, { shape }] of parameters) {
    if (seen.has(name)) continue;
    const rule = `tensor ${name} must have the shape [${shape.join(", ")}]`;
    throw new CheckpointError(fileOf(name), `${rule}, but is missing`);
  }
}

/** Whether a tensor may be in a file without being read, because its values are known from elsewhere. */
function isLeftOut(spec: ModelSpec, name: string): boolean {
  return DERIVED.test(name) || (spec.isTied && name === tensorNameOf(spec, HEAD));
}
