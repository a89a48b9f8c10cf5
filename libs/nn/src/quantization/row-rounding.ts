/** Rounds rows of float32 values to whole numbers of eight bits, each row by a scale of its own. */

import {
  Abs,
  Div,
  type EightBitType,
  ExpandLike,
  formatShape,
  type Graph,
  QuantizeLinear,
  ReduceMax,
  Reshape,
  ReshapeLike,
  type Tensor,
} from "@hone/tensor";
import { LARGEST_QUANTIZED, zeroPointOf } from "./matrix-quantizer.ts";

/** The type of the left operand of products of whole numbers, on all processors. */
export const LEFT_TYPE = "uint8";

/** Rows [..., K] as whole numbers, which stand for the rows once they are multiplied by their scales [..., 1]. */
export interface RoundedRows {
  /** With the zero point of their type added. */
  readonly values: Tensor;
  readonly scales: Tensor;
}

/** Rounds the rows of one graph, in which zero points of the same size are one tensor. */
export class RowRounding {
  readonly #graph: Graph;
  readonly #zeros = new Map<string, Tensor>();

  constructor(graph: Graph) {
    this.#graph = graph;
  }

  /** Rounds each row of x [..., K] to -127 to 127 times a scale of its own. The scale of zeros is 0, and so is what they become times it. */
  round(x: Tensor, type: EightBitType): RoundedRows {
    const scales = Div(ReduceMax(Abs(x), { axes: [-1] }), LARGEST_QUANTIZED);
    const perRow = Reshape(scales, [-1]);
    const zeros = this.#zerosFor(perRow, type);
    // Rows of one axis need no other shape.
    const axes = x.shape.slice(0, -1).flatMap((size, axis) => (size === 1 ? [] : [axis]));
    const values =
      axes.length === 1
        ? QuantizeLinear(x, perRow, zeros, axes[0]!)
        : ReshapeLike(QuantizeLinear(asRows(x), perRow, zeros, 0), x);
    return { values, scales };
  }

  /** A zero point for each row. */
  #zerosFor(perRow: Tensor, type: EightBitType): Tensor {
    const key = `${type}${formatShape(perRow.shape)}`;
    const found = this.#zeros.get(key) ?? ExpandLike(this.#graph.constant(type, [zeroPointOf(type)]), perRow);
    this.#zeros.set(key, found);
    return found;
  }
}

/** [..., K] -> [all, K] */
export function asRows(x: Tensor): Tensor {
  return Reshape(x, [-1, x.shape.at(-1)!]);
}
