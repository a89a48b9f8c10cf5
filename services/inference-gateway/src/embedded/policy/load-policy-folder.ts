/**
 * Reads the weights of a policy version and checks that they are the announced ones. Adapters are merged into their base here, so
 * that generation is as fast as without them.
 */

import {
  findBaseFolder,
  inspectModel,
  type LoadedModel,
  loadMerged,
  loadModel,
  type WeightAllocator,
} from "@hone/checkpoint";
import {
  allocateQuantized,
  listQuantized,
  listUnquantized,
  type ModelSpec,
  quantizeWeights,
  releaseValues,
  WeightQuantizer,
} from "@hone/nn";
import type { EightBitType, TensorData } from "@hone/tensor";
import { PolicyLoadError } from "../../domain/errors.ts";
import type { PolicySource } from "../../domain/inference-engine.ts";

/** Large arrays get large memory pages. Arrays of a few megabytes get small ones, and the first write to each page is slow. */
const BLOCK_BYTES = 64 * 2 ** 20;

/** A policy as an engine runs it. */
export interface ReadyPolicy {
  readonly spec: ModelSpec;
  /** The weights by name, and with `eightBits` as `quantizeWeights` makes them. */
  readonly weights: Readonly<Record<string, TensorData>>;
}

/**
 * @param eightBits quantizes the weights. @default float32
 * @throws {PolicyLoadError} when the folder holds no model that can be served, or other weights than the announced ones.
 */
export async function loadPolicyFolder(source: PolicySource, eightBits?: EightBitType): Promise<ReadyPolicy> {
  const { model, version, folder, digest } = source;
  const action = `Cannot load version ${version} of ${model}`;
  const loaded = await load(source, eightBits).catch((cause: unknown) => {
    throw new PolicyLoadError(`${action}: ${folder} is not a readable model folder`, { cause });
  });
  if (loaded.digest !== digest) {
    throw new PolicyLoadError(
      `${action}: the SHA-256 of its weights is ${loaded.digest}; it must be ${digest}`,
    );
  }
  return { spec: loaded.spec, weights: loaded.weights };
}

type Loaded = ReadyPolicy & Pick<LoadedModel, "digest">;

async function load({ folder, base }: PolicySource, eightBits: EightBitType | undefined): Promise<Loaded> {
  const findBase = base === undefined ? undefined : async () => base;
  const merge = () => loadMerged(folder, { allocate: inBlocks(), ...(findBase && { findBase }) });
  if (eightBits === undefined) return merge();
  const isAdapted = (await findBaseFolder(folder, findBase)) !== undefined;
  if (!isAdapted) return loadQuantized(folder, eightBits);
  const loaded = await merge();
  const weights = await quantizeWeights(loaded.spec, loaded.weights, eightBits);
  releaseValues(loaded.weights);
  return { ...loaded, weights };
}

/** Quantizes each matrix as soon as it is read, so that there is never a whole model in float32. */
async function loadQuantized(folder: string, eightBits: EightBitType): Promise<Loaded> {
  const { spec } = await inspectModel(folder);
  const parameters = listQuantized(spec);
  const weights = allocateQuantized(parameters, eightBits, (bytes) => new ArrayBuffer(bytes));
  const kept = new Set(listUnquantized(spec).map(({ name }) => name));
  await using quantizer = new WeightQuantizer(weights, parameters);
  const allocate = inTurns();
  const { digest } = await loadModel(folder, {
    allocate: (values, name) => (kept.has(name) ? new Float32Array(values) : allocate(values)),
    async take(name, values) {
      await quantizer.take(name, values);
      if (kept.has(name)) weights[name] = values;
    },
  });
  quantizer.finish();
  return { spec, weights, digest };
}

/** Allocates two arrays, which are used in turns: the first write to each page of new memory is slow. */
function inTurns(): (values: number) => Float32Array {
  const arrays = [new Float32Array(0), new Float32Array(0)];
  return function allocate(values: number) {
    let next = arrays.shift()!;
    if (next.length < values) next = new Float32Array(values);
    arrays.push(next);
    return next.subarray(0, values);
  };
}

/** Allocates arrays within blocks. Each block is as large as all arrays before it together, up to {@link BLOCK_BYTES}. */
function inBlocks(): WeightAllocator {
  let block = new ArrayBuffer(0);
  let used = 0;
  let given = 0;
  return function allocate(values) {
    const bytes = values * Float32Array.BYTES_PER_ELEMENT;
    if (used + bytes > block.byteLength) {
      block = new ArrayBuffer(Math.max(bytes, Math.min(given, BLOCK_BYTES)));
      used = 0;
    }
    const array = new Float32Array(block, used, values);
    used += bytes;
    given += bytes;
    return array;
  };
}
