/**
 * Training in eight bits: the forward pass has the products of {@link quantizedLinear}, and gradients pass through the rounding as if it
 * were not there (straight-through, https://arxiv.org/abs/1308.3432).
 */

import {
  Abs,
  Div,
  type EightBitType,
  FusedMatMul,
  type Graph,
  Mul,
  type Quantized,
  QuantizeLinear,
  ReduceMax,
  Reshape,
  StraightThrough,
  type Tensor,
  Transpose,
  WithGradient,
} from "@hone/tensor";
import type { ModelSpec } from "../model/model-spec.ts";
import type { Linear, WeightTensors } from "../transformer.ts";
import { LARGEST_QUANTIZED } from "./matrix-quantizer.ts";
import { operand, QuantizedProducts, zeroOf } from "./quantized-linear.ts";
import { listQuantized, type QuantizedParameter } from "./quantized-weights.ts";
import { asRows } from "./row-rounding.ts";

/** How training computes in eight bits. */
export interface EightBitTraining {
  readonly type: EightBitType;
  /**
   * Whether the layers compute their gradients in eight bits, too: those of inputs with rows of gradients that are rounded like rows of
   * activations (SwitchBack, https://arxiv.org/abs/2304.13013), those of weights with channels that are rounded over the tokens
   * of a microbatch (Jetfire, https://arxiv.org/abs/2403.12422, does it over blocks).
   */
  readonly hasGradients: boolean;
}

/** The matrices that {@link straightThroughLinear} takes as inputs. */
export function listFed(spec: ModelSpec, { hasGradients }: EightBitTraining): QuantizedParameter[] {
  return listQuantized(spec, hasGradients);
}

/**
 * Multiplies by quantized matrices that are inputs of the graph, with the results of {@link quantizedLinear}, and has gradients with respect
 * to x and to the float32 weights.
 */
export function straightThroughLinear(
  graph: Graph,
  spec: ModelSpec,
  training: EightBitTraining,
  weights: WeightTensors,
): Linear {
  const fed = listFed(spec, training);
  const products = new QuantizedProducts(graph, fed, training.type, true);
  const multipliesBack = new Set(
    fed.flatMap(({ source, channels }) => (channels === undefined ? [] : [source])),
  );
  const multiplyChannels = channelProducts(products, training.type);
  return function multiplyStraightThrough(x, name) {
    const weight = weights[name]!;
    const product = products.multiply(x, name);
    if (!multipliesBack.has(name)) {
      return StraightThrough(product, FusedMatMul(x, weight, { transB: true }));
    }
    return WithGradient(product, {
      inputs: [x, weight],
      gradientsOf: (gradient) => [products.multiplyBack(gradient, name), multiplyChannels(gradient, x)],
    });
  };
}

/**
 * Products g^T x of gradients [..., M] and activations [..., K] over all rows, which are gradients of weights [M, K]. Each channel of both is
 * rounded by a scale of its own, so that channels with large values take nothing from others.
 */
function channelProducts(
  products: QuantizedProducts,
  type: EightBitType,
): (gradient: Tensor, x: Tensor) => Tensor {
  // Projections that read the same rows share their rounding.
  const rounded = new Map<Tensor, Quantized>();
  return function multiplyChannels(gradient, x) {
    const right = rounded.get(x) ?? quantizeChannels(asRows(x), type);
    rounded.set(x, right);
    // The product reads the gradient by channels anyway, and the largest of a row is found faster than that of a column.
    return products.multiplyRounded(Transpose(asRows(gradient), [1, 0]), right);
  };
}

/** Rounds each channel of rows [N, K]. The scale of zeros is 0, and so is what they become times it. */
function quantizeChannels(rows: Tensor, type: EightBitType): Quantized {
  const { graph } = rows;
  const largest = ReduceMax(Abs(rows), { axes: [0] });
  // Rounding by channels in one operator calls a function for each value.
  const scaled = Mul(rows, Div(LARGEST_QUANTIZED, largest));
  const values = QuantizeLinear(scaled, graph.scalar("float32", 1), zeroOf(graph, type), 1);
  return operand(values, Reshape(Div(largest, LARGEST_QUANTIZED), [-1]));
}
