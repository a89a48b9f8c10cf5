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
  formatShape,
  type Graph,
  MatMul,
  MatMulIntegerToFloat,
  Mul,
  type Quantized,
  QuantizeLinear,
  ReduceMax,
  Reshape,
  ReshapeLike,
  type Tensor,
} from "@hone/tensor";
import type { Linear } from "../transformer.ts";
import { LARGEST_QUANTIZED, zeroPointOf } from "./matrix-quantizer.ts";
import type { QuantizedParameter } from "./quantized-weights.ts";
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

/** The projections of a model in eight bits, by the names of the matrices. */
export interface EightBitLinear {
  readonly multiply: Linear;
  /** The scale of each output channel of a matrix, [out]. */
  readonly scalesOf: (name: string) => Tensor;
}

/** Multiplies by quantized matrices, which are external initializers: onnxruntime packs them. */
export function quantizedLinear(
  graph: Graph,
  parameters: readonly QuantizedParameter[],
  type: EightBitType,
): EightBitLinear {
  const products = new QuantizedProducts(graph, parameters, type);
  return {
    multiply: (x, name) => products.multiply(x, name),
    scalesOf: (name) => products.scalesOf(name),
  };
}

export class QuantizedProducts {
  readonly #graph: Graph;
  readonly #type: EightBitType;
  readonly #isFed: boolean;
  readonly #parameters: ReadonlyMap<string, QuantizedParameter>;
  readonly #matrices = new Map<string, QuantizedMatrix>();
  readonly #channels = new Map<string, Tensor>();
  // The projections of a layer that read the same rows share their rounding, and all of them a few rotations.
  readonly #rounded = new Map<Tensor, QuantizedRows>();
  readonly #rotations = new Map<number, Tensor>();
  readonly #zeros = new Map<string, Tensor>();

  /** @param isFed whether the graph takes the matrices as inputs, which may change between runs. @default as external initializers */
  constructor(graph: Graph, parameters: readonly QuantizedParameter[], type: EightBitType, isFed = false) {
    this.#graph = graph;
    this.#type = type;
    this.#isFed = isFed;
    this.#parameters = new Map(parameters.map((parameter) => [parameter.source, parameter]));
  }

  /** x W^T for x [..., in]. */
  multiply(x: Tensor, name: string): Tensor {
    const { values, scales, parameter } = this.#matrixOf(name);
    const rows = this.#rounded.get(x) ?? this.#quantizeRows(this.#rotate(x, parameter.block));
    this.#rounded.set(x, rows);
    return multiplyRows(rows, operand(values, scales));
  }

  /** The scale of each output channel, [out]. */
  scalesOf(name: string): Tensor {
    return this.#matrixOf(name).scales;
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
    return multiplyRows(this.#quantizeRows(rows), right);
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

  /** Rounds each row of x [..., K] to -127 to 127 times a scale of its own. The scale of zeros is 0, and so is what they become times it. */
  #quantizeRows(x: Tensor): QuantizedRows {
    const scales = Div(ReduceMax(Abs(x), { axes: [-1] }), LARGEST_QUANTIZED);
    const perRow = Reshape(scales, [-1]);
    return {
      values: ReshapeLike(QuantizeLinear(asRows(x), perRow, this.#zerosFor(perRow), 0), x),
      scales,
    };
  }

  /** A zero point for each row. */
  #zerosFor(perRow: Tensor): Tensor {
    const size = formatShape(perRow.shape);
    const found =
      this.#zeros.get(size) ?? ExpandLike(this.#graph.constant("uint8", [zeroPointOf("uint8")]), perRow);
    this.#zeros.set(size, found);
    return found;
  }
}

function multiplyRows({ values, scales }: QuantizedRows, right: Quantized): Tensor {
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

/** [..., K] -> [all, K] */
export function asRows(x: Tensor): Tensor {
  return Reshape(x, [-1, x.shape.at(-1)!]);
}
