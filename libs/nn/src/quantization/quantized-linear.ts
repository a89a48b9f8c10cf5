/**
 * Products of a graph in eight bits: y = x W^T, where each row of x is rounded to whole numbers times a scale of its own, and
 * W is quantized (quantized-weights.ts). The sums are whole numbers, which have no order: a row of the result has the same bits
 * alone and among others, on any processor.
 */

import {
  type EightBitType,
  type Graph,
  MatMul,
  MatMulIntegerToFloat,
  Mul,
  type Quantized,
  Reshape,
  ReshapeLike,
  type Tensor,
} from "@hone/tensor";
import type { Linear } from "../transformer.ts";
import { zeroPointOf } from "./matrix-quantizer.ts";
import type { QuantizedParameter } from "./quantized-weights.ts";
import { hadamardMatrix } from "./rotation.ts";
import { LEFT_TYPE, type RoundedRows, RowRounding } from "./row-rounding.ts";

/** A quantized matrix in a graph: whole numbers [in, out] with their scales [out]. */
interface QuantizedMatrix {
  readonly parameter: QuantizedParameter;
  readonly values: Tensor;
  readonly scales: Tensor;
}

/** Multiplies by quantized matrices, which are external initializers: onnxruntime packs them. */
export function quantizedLinear(
  graph: Graph,
  parameters: readonly QuantizedParameter[],
  type: EightBitType,
): Linear {
  const products = new QuantizedProducts(graph, parameters, type);
  return (x, name) => products.multiply(x, name);
}

export class QuantizedProducts {
  readonly #graph: Graph;
  readonly #type: EightBitType;
  readonly #isFed: boolean;
  readonly #parameters: ReadonlyMap<string, QuantizedParameter>;
  readonly #matrices = new Map<string, QuantizedMatrix>();
  readonly #channels = new Map<string, Tensor>();
  // The projections of a layer that read the same rows share their rounding, and all of them a few rotations.
  readonly #rounded = new Map<Tensor, RoundedRows>();
  readonly #rotations = new Map<number, Tensor>();
  readonly #rounding: RowRounding;

  /** @param isFed whether the graph takes the matrices as inputs, which may change between runs. @default as external initializers */
  constructor(graph: Graph, parameters: readonly QuantizedParameter[], type: EightBitType, isFed = false) {
    this.#graph = graph;
    this.#type = type;
    this.#rounding = new RowRounding(graph);
    this.#isFed = isFed;
    this.#parameters = new Map(parameters.map((parameter) => [parameter.source, parameter]));
  }

  /** x W^T for x [..., in]. */
  multiply(x: Tensor, name: string): Tensor {
    const { values, scales, parameter } = this.#matrixOf(name);
    const rows = this.#rounded.get(x) ?? this.#rounding.round(this.#rotate(x, parameter.block), LEFT_TYPE);
    this.#rounded.set(x, rows);
    return multiplyRows(rows, operand(values, scales));
  }

  /** g W for gradients g [..., out], by the same whole numbers; the parameter has `channels`. */
  multiplyBack(gradient: Tensor, name: string): Tensor {
    const { parameter, scales } = this.#matrixOf(name);
    const { channels, out, inner, block } = parameter;
    const values = this.#channels.get(name) ?? this.#declare(channels!, this.#type, [out, inner]);
    this.#channels.set(name, values);
    return this.#rotate(this.multiplyRounded(Mul(gradient, scales), operand(values)), block);
  }

  /** Products of rows [..., K], which are rounded, and a matrix [K, N] of whole numbers. */
  multiplyRounded(rows: Tensor, right: Quantized): Tensor {
    return multiplyRows(this.#rounding.round(rows, LEFT_TYPE), right);
  }

  /** Multiplies each block of the rows of x [..., K] by the rotation, which is its own inverse. */
  #rotate(x: Tensor, block: number): Tensor {
    if (block === 1) return x;
    const rotation =
      this.#rotations.get(block) ?? this.#graph.constant("float32", hadamardMatrix(block), [block, block]);
    this.#rotations.set(block, rotation);
    return ReshapeLike(MatMul(Reshape(x, [-1, block]), rotation), x);
  }

  #matrixOf(name: string): QuantizedMatrix {
    const found = this.#matrices.get(name);
    if (found !== undefined) return found;
    const parameter = this.#parameters.get(name)!;
    const { values, scales, inner, out } = parameter;
    const matrix = {
      parameter,
      values: this.#declare(values, this.#type, [inner, out]),
      scales: this.#declare(scales, "float32", [out]),
    };
    this.#matrices.set(name, matrix);
    return matrix;
  }

  /** An array of the quantized matrices. */
  #declare(name: string, dtype: EightBitType | "float32", shape: readonly number[]): Tensor {
    return this.#isFed ? this.#graph.input(name, dtype, shape) : this.#graph.initializer(name, dtype, shape);
  }
}

function multiplyRows({ values, scales }: RoundedRows, right: Quantized): Tensor {
  return Mul(MatMulIntegerToFloat(operand(values), right), scales);
}

/** Whole numbers as an operand of a product. @param scale of its columns. @default 1 */
export function operand(values: Tensor, scale = values.graph.scalar("float32", 1)): Quantized {
  return { values, scale, zeroPoint: zeroOf(values.graph, values.dtype as EightBitType) };
}

/** What stands for 0 in a type. */
export function zeroOf(graph: Graph, type: EightBitType): Tensor {
  return graph.scalar(type, zeroPointOf(type));
}
