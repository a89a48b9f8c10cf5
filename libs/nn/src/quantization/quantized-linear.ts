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
  FusedMatMul,
  formatShape,
  type Graph,
  MatMul,
  MatMulIntegerToFloat,
  Mul,
  QuantizeLinear,
  ReduceMax,
  Reshape,
  ReshapeLike,
  StraightThrough,
  type Tensor,
  WithGradient,
} from "@hone/tensor";
import type { ModelSpec } from "../model/model-spec.ts";
import type { Linear, WeightTensors } from "../transformer.ts";
import { LARGEST_QUANTIZED, UINT8_ZERO } from "./matrix-quantizer.ts";
import { listQuantized, listTransposed, type QuantizedParameter } from "./quantized-weights.ts";
import { hadamardMatrix } from "./rotation.ts";

/** Rows [..., K] as whole numbers with 128 added, and their scales [..., 1]. */
interface QuantizedRows {
  readonly values: Tensor;
  readonly scales: Tensor;
}

/** A quantized matrix in a graph: whole numbers [in, out] with their scales [out]. */
interface QuantizedMatrix {
  readonly parameter: QuantizedParameter;
  readonly values: Tensor;
  readonly scales: Tensor;
}

/**
 * Multiplies by quantized matrices, by the names of their sources.
 * @param isFed whether the graph takes them as inputs, which may change between runs. @default as external initializers, which
 *   onnxruntime packs
 */
export function quantizedLinear(
  graph: Graph,
  parameters: readonly QuantizedParameter[],
  type: EightBitType,
  isFed = false,
): Linear {
  const bySource = new Map(parameters.map((parameter) => [parameter.source, parameter]));
  const declared = new Map<string, QuantizedMatrix>();
  const declare = isFed ? graph.input.bind(graph) : graph.initializer.bind(graph);
  function matrixOf(name: string): QuantizedMatrix {
    const parameter = bySource.get(name)!;
    const { values, scales, inner, out } = parameter;
    return {
      parameter,
      values: declare(values, type, [inner, out]),
      scales: declare(scales, "float32", [out]),
    };
  }
  // The projections of a layer that read the same rows share their rounding, and all of them a few rotations.
  const rounded = new Map<Tensor, QuantizedRows>();
  const rotations = new Map<number, Tensor>();
  const zeros = new Map<string, Tensor>();
  function rotationOf(block: number): Tensor {
    const rotation = rotations.get(block) ?? graph.constant("float32", hadamardMatrix(block), [block, block]);
    rotations.set(block, rotation);
    return rotation;
  }
  /** A zero point for each row. */
  function zerosFor(perRow: Tensor): Tensor {
    const size = formatShape(perRow.shape);
    const found = zeros.get(size) ?? ExpandLike(graph.constant("uint8", [UINT8_ZERO]), perRow);
    zeros.set(size, found);
    return found;
  }
  return function multiply(x, name) {
    const matrix = declared.get(name) ?? matrixOf(name);
    declared.set(name, matrix);
    const { block } = matrix.parameter;
    const rows = rounded.get(x) ?? quantizeRows(block === 1 ? x : rotate(x, rotationOf(block)), zerosFor);
    rounded.set(x, rows);
    return multiplyRows(rows, matrix);
  };
}

/** How training computes in eight bits. */
export interface EightBitTraining {
  readonly type: EightBitType;
  /**
   * Whether the layers compute the gradients of their inputs in eight bits, too, with rows of gradients rounded like rows of activations
   * (SwitchBack, https://arxiv.org/abs/2304.13013, with rotations). Those of weights are float32 products in any case.
   */
  readonly hasGradients: boolean;
}

/** The matrices that {@link straightThroughLinear} takes as inputs. */
export function listFed(spec: ModelSpec, { hasGradients }: EightBitTraining): QuantizedParameter[] {
  return [...listQuantized(spec), ...(hasGradients ? listTransposed(spec) : [])];
}

/**
 * The same for training, with the quantized matrices as inputs: its results are those of {@link quantizedLinear}, and its gradients those of
 * the float32 product, with respect to x and to the float32 weights.
 */
export function straightThroughLinear(
  graph: Graph,
  spec: ModelSpec,
  { type, hasGradients }: EightBitTraining,
  weights: WeightTensors,
): Linear {
  const multiply = quantizedLinear(graph, listQuantized(spec), type, true);
  const transposed = listTransposed(spec);
  const multiplyBack = quantizedLinear(graph, transposed, type, true);
  const hasTransposed = new Set(transposed.map(({ source }) => source));
  return function multiplyStraightThrough(x, name) {
    const weight = weights[name]!;
    const product = multiply(x, name);
    if (!hasGradients || !hasTransposed.has(name)) {
      return StraightThrough(product, FusedMatMul(x, weight, { transB: true }));
    }
    return WithGradient(product, {
      inputs: [x, weight],
      gradientsOf: (gradient) => [
        multiplyBack(gradient, name),
        FusedMatMul(asRows(gradient), asRows(x), { transA: true }),
      ],
    });
  };
}

/** [..., K] -> [all, K] */
function asRows(x: Tensor): Tensor {
  return Reshape(x, [-1, x.shape.at(-1)!]);
}

/** Rounds each row of x [..., K] to -127 to 127 times a scale of its own. The scale of zeros is 0, and so is what they become times it. */
function quantizeRows(x: Tensor, zerosFor: (perRow: Tensor) => Tensor): QuantizedRows {
  const scales = Div(ReduceMax(Abs(x), { axes: [-1] }), LARGEST_QUANTIZED);
  const perRow = Reshape(scales, [-1]);
  return { values: ReshapeLike(QuantizeLinear(asRows(x), perRow, zerosFor(perRow), 0), x), scales };
}

/** Multiplies each block of the rows of x [..., K] by the rotation [block, block]. */
function rotate(x: Tensor, rotation: Tensor): Tensor {
  return ReshapeLike(MatMul(Reshape(x, [-1, rotation.shape[0]!]), rotation), x);
}

function multiplyRows(rows: QuantizedRows, { values, scales }: QuantizedMatrix): Tensor {
  const { graph } = rows.values;
  const left = {
    values: rows.values,
    scale: graph.scalar("float32", 1),
    zeroPoint: graph.scalar("uint8", UINT8_ZERO),
  };
  const zeroPoint = graph.scalar(values.dtype, values.dtype === "uint8" ? UINT8_ZERO : 0);
  const right = { values, scale: scales, zeroPoint };
  return Mul(MatMulIntegerToFloat(left, right), rows.scales);
}
