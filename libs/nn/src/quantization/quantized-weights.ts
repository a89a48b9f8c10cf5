/**
 * Weights in eight bits, "W8A8": each output channel of a matrix has a scale of its own, and its values are whole numbers from -127 to
 * 127 times the scale (symmetric, as in LLM.int8(), https://arxiv.org/abs/2208.07339, section 2.1).
 *
 * Matrices of layers and head are quantized, most of them after a rotation (rotation.ts). The embedding is looked up in float32, biases and norms are float32.
 */

import type { EightBitType } from "@hone/tensor";
import type { ModelSpec } from "../model/model-spec.ts";
import {
  headParameter,
  layerOf,
  listParameters,
  type ParameterInfo,
  type ParameterKind,
  type Weights,
} from "../model/parameters.ts";
import { rotateRow, rotationBlock } from "./rotation.ts";

/** The largest quantized value. -128 is not used, so that the range is symmetric. */
export const LARGEST_QUANTIZED = 127;
/** What stands for 0 in a uint8. */
export const UINT8_ZERO = 128;

/** A matrix [out, in] that is quantized; its whole numbers are stored as [in, out], as products read them. */
export interface QuantizedParameter {
  /** The parameter with the float32 values. */
  readonly source: string;
  /** Whether the matrix is the parameter's transpose. */
  readonly isTransposed: boolean;
  readonly out: number;
  readonly inner: number;
  /** Size of the blocks in which the rows of the matrix, and of what it multiplies, are rotated; 1 = not. */
  readonly block: number;
  /** Names of the whole numbers [in, out] and of the scales [out]. */
  readonly values: string;
  readonly scales: string;
}

/** The one projection whose inputs, averages of values, have no large channels. */
const UNROTATED = "self_attn.o_proj.weight";

/** The matrices that are quantized: those of the layers, and that of the head, which may be the embedding too. */
export function listQuantized(spec: ModelSpec): QuantizedParameter[] {
  const head = headParameter(spec);
  return listParameters(spec)
    .filter(({ name, kind }) => name === head || isMatrix(kind))
    .map(({ name, shape }) => {
      const [out, inner] = shape as readonly [number, number];
      const block = name.endsWith(UNROTATED) ? 1 : rotationBlock(inner);
      const names = { values: `${name}.quantized`, scales: `${name}.scales` };
      return { source: name, isTransposed: false, out, inner, block, ...names };
    });
}

/** The transposes of the layers' matrices, by which gradients are multiplied: for y = x W^T, dx = dy W. */
export function listTransposed(spec: ModelSpec): QuantizedParameter[] {
  return listParameters(spec)
    .filter(({ name, kind }) => layerOf(name) !== undefined && isMatrix(kind))
    .map(({ name, shape }) => {
      const [inner, out] = shape as readonly [number, number];
      const names = { values: `${name}.transposed.quantized`, scales: `${name}.transposed.scales` };
      return { source: name, isTransposed: true, out, inner, block: rotationBlock(inner), ...names };
    });
}

function isMatrix(kind: ParameterKind): boolean {
  return kind === "matrix" || kind === "residual_matrix";
}

/** The parameters that stay in float32. A tied head leaves the embedding here, as it is looked up. */
export function listUnquantized(spec: ModelSpec): ParameterInfo[] {
  return listParameters(spec).filter(
    ({ kind }) => kind === "norm" || kind === "bias" || kind === "embedding",
  );
}

/** Data of the graph's initializers by name: quantized matrices with their scales, and copies of what stays in float32. */
export function quantizeWeights(spec: ModelSpec, weights: Weights, type: EightBitType): QuantizedMatrices {
  const parameters = listQuantized(spec);
  const made = allocateQuantized(parameters, type, (bytes) => new ArrayBuffer(bytes));
  quantizeInto(made, parameters, spec, weights);
  for (const { name } of listUnquantized(spec)) made[name] = weights[name]!.slice();
  return made;
}

/** The quantized matrices and their scales by name. */
export type QuantizedMatrices = Record<string, Int8Array | Uint8Array | Float32Array>;

/** Arrays for quantized matrices and their scales. */
export function allocateQuantized(
  parameters: readonly QuantizedParameter[],
  type: EightBitType,
  allocate: (bytes: number) => ArrayBuffer | SharedArrayBuffer,
): QuantizedMatrices {
  const made: QuantizedMatrices = {};
  for (const { values, scales, out, inner } of parameters) {
    const buffer = allocate(out * inner);
    made[values] = type === "int8" ? new Int8Array(buffer) : new Uint8Array(buffer);
    made[scales] = new Float32Array(allocate(out * Float32Array.BYTES_PER_ELEMENT));
  }
  return made;
}

/** Quantizes matrices of a model. */
export function quantizeInto(
  target: QuantizedMatrices,
  parameters: readonly QuantizedParameter[],
  spec: ModelSpec,
  weights: Weights,
): void {
  const quantizer = new WeightQuantizer(target, parameters);
  for (const { name } of listParameters(spec)) quantizer.take(name, weights[name]!);
  quantizer.finish();
}

/**
 * Quantizes a model parameter by parameter, in any order, for callers that do not hold all of them at a time.
 *
 * If a weight is not finite, all scales are NaN, and so is every result: what rounding makes of a single NaN would look like a number.
 */
export class WeightQuantizer {
  readonly #target: QuantizedMatrices;
  readonly #parameters: readonly QuantizedParameter[];
  readonly #bySource: ReadonlyMap<string, readonly QuantizedParameter[]>;
  #isSound = true;

  /** @param target arrays of {@link allocateQuantized} */
  constructor(target: QuantizedMatrices, parameters: readonly QuantizedParameter[]) {
    this.#target = target;
    this.#parameters = parameters;
    this.#bySource = Map.groupBy(parameters, ({ source }) => source);
  }

  /** Quantizes a parameter as often as it is wanted, which may be never. */
  take(name: string, values: Float32Array): void {
    this.#isSound &&= areFinite(values);
    for (const parameter of this.#bySource.get(name) ?? []) {
      const matrix = this.#target[parameter.values] as Int8Array | Uint8Array;
      quantizeMatrix(values, parameter, matrix, this.#scalesOf(parameter));
    }
  }

  /** Call it after the last parameter. */
  finish(): void {
    if (this.#isSound) return;
    for (const parameter of this.#parameters) this.#scalesOf(parameter).fill(Number.NaN);
  }

  #scalesOf({ scales }: QuantizedParameter): Float32Array {
    return this.#target[scales] as Float32Array;
  }
}

function areFinite(values: Float32Array): boolean {
  // Of what is not finite, the difference is NaN. A call for each of many million values would take longer than rounding them.
  for (let i = 0; i < values.length; i++) if (values[i]! - values[i]! !== 0) return false;
  return true;
}

/** Output channels that are written together, so that each write fills a line of the processor's cache. */
const CHANNELS = 64;
/** Added to a number and taken away again, it rounds the number to the nearest whole one, halves to even. */
const ROUNDING = 1.5 * 2 ** 52;
/** The smallest scale, so that zeros are not divided by zero. */
export const SMALLEST_SCALE = 2 ** -100;

/**
 * Rotates the rows of a matrix [out, in], rounds them and transposes it. All of it is double precision, so that every machine gets
 * the same numbers.
 */
function quantizeMatrix(
  matrix: Float32Array,
  { out, inner, block, isTransposed }: QuantizedParameter,
  values: Int8Array | Uint8Array,
  scales: Float32Array,
): void {
  const zero = values instanceof Int8Array ? 0 : UINT8_ZERO;
  const row = new Float64Array(inner);
  const rounded = new Uint8Array(CHANNELS * inner);
  const target = new Uint8Array(values.buffer, values.byteOffset, values.length);
  for (let first = 0; first < out; first += CHANNELS) {
    const count = Math.min(CHANNELS, out - first);
    for (let i = 0; i < count; i++) {
      const channel = first + i;
      if (isTransposed) for (let k = 0; k < inner; k++) row[k] = matrix[k * out + channel]!;
      else for (let k = 0; k < inner; k++) row[k] = matrix[channel * inner + k]!;
      rotateRow(row, block);
      scales[first + i] = roundRow(row, zero, rounded, i * inner);
    }
    for (let k = 0; k < inner; k++) {
      const to = k * out + first;
      for (let i = 0; i < count; i++) target[to + i] = rounded[i * inner + k]!;
    }
  }
}

/**
 * Writes the values of a row as whole numbers, of which a byte holds the lowest eight bits.
 * @returns their scale in float32
 */
function roundRow(row: Float64Array, zero: number, target: Uint8Array, at: number): number {
  let largest = 0;
  for (let i = 0; i < row.length; i++) {
    const size = Math.abs(row[i]!);
    if (size > largest) largest = size;
  }
  const scale = Math.max(Math.fround(largest / LARGEST_QUANTIZED), SMALLEST_SCALE);
  const factor = 1 / scale;
  for (let i = 0; i < row.length; i++) {
    target[at + i] = row[i]! * factor + ROUNDING - ROUNDING + zero;
  }
  return scale;
}
