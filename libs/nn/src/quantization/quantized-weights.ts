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
import { MatrixQuantizer, type QuantizedMatrixShape } from "./matrix-quantizer.ts";
import { rotationBlock } from "./rotation.ts";

/** A matrix of a model that is quantized. */
export interface QuantizedParameter extends QuantizedMatrixShape {
  /** The parameter with the float32 values. */
  readonly source: string;
  /** Names of the whole numbers [in, out] and of the scales [out]. */
  readonly values: string;
  readonly scales: string;
  /** Name of the same whole numbers as [out, in], by which gradients are multiplied: for y = x W^T, dx = dy W. Absent = not wanted. */
  readonly channels?: string;
}

/** The one projection whose inputs, averages of values, have no large channels. */
const UNROTATED = "self_attn.o_proj.weight";

/**
 * The matrices that are quantized: those of the layers, and that of the head, which may be the embedding too.
 * @param hasGradients whether gradients are multiplied by those of the layers. @default false
 */
export function listQuantized(spec: ModelSpec, hasGradients = false): QuantizedParameter[] {
  const head = headParameter(spec);
  return listParameters(spec)
    .filter(({ name, kind }) => name === head || isMatrix(kind))
    .map(({ name, shape }) => {
      const [out, inner] = shape as readonly [number, number];
      const block = name.endsWith(UNROTATED) ? 1 : rotationBlock(inner);
      const names = {
        values: `${name}.quantized`,
        scales: `${name}.scales`,
        ...(hasGradients && layerOf(name) !== undefined && { channels: `${name}.quantized_channels` }),
      };
      return { source: name, out, inner, block, ...names };
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
export async function quantizeWeights(
  spec: ModelSpec,
  weights: Weights,
  type: EightBitType,
): Promise<QuantizedMatrices> {
  const parameters = listQuantized(spec);
  const made = allocateQuantized(parameters, type, (bytes) => new ArrayBuffer(bytes));
  await using quantizer = new WeightQuantizer(made, parameters);
  await quantizer.takeAll(spec, weights);
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
  for (const { values, scales, channels, out, inner } of parameters) {
    for (const name of channels === undefined ? [values] : [values, channels]) {
      const buffer = allocate(out * inner);
      made[name] = type === "int8" ? new Int8Array(buffer) : new Uint8Array(buffer);
    }
    made[scales] = new Float32Array(allocate(out * Float32Array.BYTES_PER_ELEMENT));
  }
  return made;
}

/**
 * Quantizes a model parameter by parameter, in any order, for callers that do not hold all of them at a time.
 *
 * If a weight is not finite, all scales are NaN, and so is every result: a NaN among a row's activations may be hidden when the row
 * is rounded, and would then look like a number.
 */
export class WeightQuantizer {
  readonly #target: QuantizedMatrices;
  readonly #parameters: readonly QuantizedParameter[];
  readonly #bySource: ReadonlyMap<string, QuantizedParameter>;
  readonly #matrices = new MatrixQuantizer();
  #isSound = true;

  /** @param target arrays of {@link allocateQuantized} */
  constructor(target: QuantizedMatrices, parameters: readonly QuantizedParameter[]) {
    this.#target = target;
    this.#parameters = parameters;
    this.#bySource = new Map(parameters.map((parameter) => [parameter.source, parameter]));
  }

  /** Quantizes a whole model. @param hasChannels as {@link take} */
  async takeAll(spec: ModelSpec, weights: Weights, hasChannels = true): Promise<void> {
    for (const { name } of listParameters(spec)) await this.take(name, weights[name]!, hasChannels);
    this.finish();
  }

  /**
   * Quantizes a parameter, if it is one of those that are quantized.
   * @param hasChannels whether the second arrangement, which gradients are multiplied by, is written where the parameter has it. @default true
   */
  async take(name: string, values: Float32Array, hasChannels = true): Promise<void> {
    const parameter = this.#bySource.get(name);
    if (parameter === undefined) {
      this.#isSound &&= areFinite(values);
      return;
    }
    const { channels } = parameter;
    const scales = this.#scalesOf(parameter);
    await this.#matrices.quantize(values, parameter, {
      values: this.#matrixOf(parameter.values),
      channels: channels === undefined || !hasChannels ? undefined : this.#matrixOf(channels),
      scales,
    });
    this.#isSound &&= areFinite(scales);
  }

  /** Call it after the last parameter of a model. Then those of another version may be taken. */
  finish(): void {
    if (!this.#isSound) for (const parameter of this.#parameters) this.#scalesOf(parameter).fill(Number.NaN);
    this.#isSound = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#matrices.release();
  }

  #matrixOf(name: string): Int8Array | Uint8Array {
    return this.#target[name] as Int8Array | Uint8Array;
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
