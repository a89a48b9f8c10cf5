/**
 * Products of a graph in eight bits: y = x W^T, where each row of x is rounded to whole numbers times a scale of its own, and
 * W is quantized (quantized-weights.ts). The sums are whole numbers, which have no order: a row of the result has the same bits
 * alone and among others, on any processor.
 */

import {
  Abs,
  Div,
  type EightBitType,
  ExpandLike,
  type Graph,
  MatMul,
  MatMulIntegerToFloat,
  Max,
  Mul,
  QuantizeLinear,
  ReduceMax,
  Reshape,
  type Tensor,
  Unsqueeze,
} from "@hone/tensor";
import type { ModelSpec } from "../model/model-spec.ts";
import type { Linear } from "../transformer.ts";
import {
  LARGEST_QUANTIZED,
  listQuantized,
  type QuantizedParameter,
  SMALLEST_SCALE,
  UINT8_ZERO,
} from "./quantized-weights.ts";
import { hadamardMatrix } from "./rotation.ts";

/** Rows [M, K] as whole numbers with 128 added, and their scales [M]. */
interface QuantizedRows {
  readonly values: Tensor;
  readonly scales: Tensor;
}

/** Declares the quantized matrices as external initializers, and multiplies by them. */
export function quantizedLinear(_graph: Graph, spec: ModelSpec, type: EightBitType): Linear {
  const parameters = new Map(listQuantized(spec).map((parameter) => [parameter.source, parameter]));
  // The projections of a layer that read the same rows share their rounding.
  const rounded = new Map<Tensor, QuantizedRows>();
  return function multiply(x, name) {
    const parameter = parameters.get(name)!;
    const rows = rounded.get(x) ?? quantizeRows(x, parameter.block);
    rounded.set(x, rows);
    return Reshape(multiplyRows(rows, parameter, type), [...x.shape.slice(0, -1), parameter.out]);
  };
}

/** Rotates each row of x [..., K] and rounds it to -127 to 127 times a scale of its own. */
function quantizeRows(x: Tensor, block: number): QuantizedRows {
  const width = x.shape.at(-1)!;
  const rows = Reshape(rotate(x, block), [-1, width]);
  const largest = ReduceMax(Abs(rows), { axes: [1], keepDims: false });
  const scales = Max(Div(largest, LARGEST_QUANTIZED), SMALLEST_SCALE);
  const zeros = ExpandLike(x.graph.constant("uint8", [UINT8_ZERO]), scales);
  return { values: QuantizeLinear(rows, scales, zeros, 0), scales };
}

function rotate(x: Tensor, block: number): Tensor {
  if (block === 1) return x;
  const rotation = x.graph.constant("float32", hadamardMatrix(block), [block, block]);
  return MatMul(Reshape(x, [-1, block]), rotation);
}

function multiplyRows(rows: QuantizedRows, parameter: QuantizedParameter, type: EightBitType): Tensor {
  const { graph } = rows.values;
  const { out, inner, values, scales } = parameter;
  const left = {
    values: rows.values,
    scale: graph.scalar("float32", 1),
    zeroPoint: graph.scalar("uint8", UINT8_ZERO),
  };
  const right = {
    values: graph.initializer(values, type, [inner, out]),
    scale: graph.initializer(scales, "float32", [out]),
    zeroPoint: graph.scalar(type, type === "uint8" ? UINT8_ZERO : 0),
  };
  return Mul(MatMulIntegerToFloat(left, right), Unsqueeze(rows.scales, [1]));
}
