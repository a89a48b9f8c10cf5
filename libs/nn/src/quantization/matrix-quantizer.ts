/**
 * Rounds matrices to eight bits with onnxruntime: the rows of a version's weights are many, and its operators use vectors and threads.
 *
 * The rotation adds and subtracts powers of two times the weights in the order of the rows, and all else is exact or rounded
 * once. So processors differ only where their kernels add in another order, which those for x64 do not.
 */

import {
  Abs,
  Add,
  Div,
  type EightBitType,
  ExpandLike,
  Graph,
  GraphSession,
  MatMul,
  Max,
  multiplyDims,
  QuantizeLinear,
  ReduceMax,
  ReduceSum,
  Reshape,
  Sub,
  Transpose,
} from "@hone/tensor";
import { hadamardMatrix } from "./rotation.ts";

/** The largest quantized value. -128 is not used, so that the range is symmetric. */
export const LARGEST_QUANTIZED = 127;
/** What stands for 0 in a uint8. */
const UINT8_ZERO = 128;
/** The smallest scale, so that zeros are not divided by zero. */
const SMALLEST_SCALE = 2 ** -100;

/** What stands for 0 in a type. */
export function zeroPointOf(type: EightBitType): number {
  return type === "uint8" ? UINT8_ZERO : 0;
}

/** Values of a run. Larger matrices are rounded in parts, so that what is between two operators takes little memory. */
const RUN_VALUES = 2 ** 20;

/** A matrix [out, in] that is quantized. */
export interface QuantizedMatrixShape {
  readonly out: number;
  readonly inner: number;
  /** Size of the blocks in which the rows of the matrix, and of what it multiplies, are rotated; 1 = not. */
  readonly block: number;
}

/** Where the whole numbers of a matrix and the scales [out] go. */
export interface QuantizedTarget {
  /** [in, out], as products of activations read them. */
  readonly values: Int8Array | Uint8Array;
  /** [out, in], as products of gradients read them; absent = not wanted. */
  readonly channels?: Int8Array | Uint8Array | undefined;
  readonly scales: Float32Array;
}

export class MatrixQuantizer {
  readonly #sessions = new Map<string, Promise<GraphSession>>();

  /** If a weight of a channel is not finite, neither is the channel's scale. */
  async quantize(
    weights: Float32Array,
    matrix: QuantizedMatrixShape,
    target: QuantizedTarget,
  ): Promise<void> {
    const { out, inner } = matrix;
    const most = Math.max(1, Math.floor(RUN_VALUES / inner));
    for (let first = 0; first < out; first += most) {
      const count = Math.min(most, out - first);
      const rows = weights.subarray(first * inner, (first + count) * inner);
      await this.#quantizeChannels(rows, matrix, { first, count }, target);
    }
  }

  async release(): Promise<void> {
    for (const session of this.#sessions.values()) await (await session).release();
    this.#sessions.clear();
  }

  async #quantizeChannels(
    data: Float32Array,
    { out, inner, block }: QuantizedMatrixShape,
    { first, count }: { readonly first: number; readonly count: number },
    target: QuantizedTarget,
  ): Promise<void> {
    const type = target.values instanceof Int8Array ? "int8" : "uint8";
    const session = await this.#sessionFor(block, type);
    const shape = [count, inner / block, block];
    const outputs = ["values", "scales", ...(target.channels === undefined ? [] : ["channels"])];
    const found = await session.run({ weights: { dtype: "float32", data, shape } }, outputs);
    target.scales.set(found.scales!.data as Float32Array, first);
    target.channels?.set(found.channels!.data as Int8Array | Uint8Array, first * inner);
    const rounded = found.values!.data as Int8Array | Uint8Array;
    if (count === out) target.values.set(rounded);
    else {
      for (let k = 0; k < inner; k++) {
        target.values.set(rounded.subarray(k * count, (k + 1) * count), k * out + first);
      }
    }
  }

  #sessionFor(block: number, type: EightBitType): Promise<GraphSession> {
    const key = `${block} ${type}`;
    const session = this.#sessions.get(key) ?? GraphSession.create(roundingGraph(block, type));
    this.#sessions.set(key, session);
    return session;
  }
}

/** Rotates channels and rounds them by scales of their own. */
function roundingGraph(block: number, type: EightBitType): Graph {
  const graph = new Graph("rounding");
  const channels = graph.input("weights", "float32", ["out", "blocks", block]);
  const rotation = graph.constant("float32", hadamardMatrix(block), [block, block]);
  const inner = multiplyDims(block, "blocks");
  const rotated = Reshape(block === 1 ? channels : MatMul(channels, rotation), ["out", inner]);
  const largest = Reshape(ReduceMax(Abs(rotated), { axes: [1] }), ["out"]);
  // The largest value may hide a NaN, which a sum does not.
  const sum = Reshape(ReduceSum(rotated, { axes: [1] }), ["out"]);
  const scales = Add(Max(Div(largest, LARGEST_QUANTIZED), SMALLEST_SCALE), Sub(sum, sum));
  const zeros = ExpandLike(graph.constant(type, [zeroPointOf(type)]), scales);
  const rounded = QuantizeLinear(rotated, scales, zeros, 0);
  graph.output("channels", rounded);
  graph.output("values", Transpose(rounded, [1, 0]));
  graph.output("scales", scales);
  return graph;
}
