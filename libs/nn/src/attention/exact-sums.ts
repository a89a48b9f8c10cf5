/**
 * Attention whose sums have no order, for models in eight bits.
 *
 * A sum of float32 numbers depends on their order, as every addition rounds. It does not where nothing is rounded: where all numbers are
 * whole multiples of one unit, and no sum of some of them reaches 2^24 units. So what attention adds up over the tokens is first rounded to
 * multiples of a power of two, and a token's result has the same bits in any layout, beside anything, however long its context:
 *
 *   X1: values to 2^-6 of a power of two near their usual size, which the weights tell ({@link attendRounded}).
 *   X2: e^(score - largest score), for its sum, to 2^-23 of a power of two near the number of tokens that are seen. The sum is
 *       at most this number.
 *   X3: e^(score - largest score), as a factor of the values, to 2^-13 of a power of two near that sum. The sum of values is exact
 *       where these are below 21 times their usual size. Where one is larger, last bits may differ by the layout.
 *
 * A score is a sum over the channels of a head. Products of all layouts add them up in the same order, as long as a head has at most 128,
 * which onnxruntime adds up in one go.
 */
import {
  Abs,
  Add,
  Cast,
  Div,
  Exp,
  MatMul,
  Max,
  Mul,
  ReduceMax,
  ReduceMean,
  ReduceSum,
  Reshape,
  Sqrt,
  StraightThrough,
  Sub,
  type Tensor,
} from "@hone/tensor";
import type { ModelSpec } from "../model/model-spec.ts";
import { hasBias, layerBias, layerParameter } from "../model/parameters.ts";
import { LARGEST_QUANTIZED } from "../quantization/matrix-quantizer.ts";
import type { Attend, WeightTensors } from "../transformer.ts";
import { fromGroups, groupedScores } from "./attention.ts";

/** Added to a number below 2^22, and subtracted again, it leaves the nearest whole number: float32 values of this size are 1 apart. */
const TO_WHOLE = 1.5 * 2 ** 23;
/** The same for multiples of the units of X1, X2 and X3, as a share of their power of two. */
const TO_VALUE = 2 ** -6 * TO_WHOLE;
const TO_SUMMED = 2 ** -23 * TO_WHOLE;
const TO_FACTOR = 2 ** -13 * TO_WHOLE;

/**
 * The exponentials of masked scores would be numbers below float32's normal ones, which processors take ten times as long to compute.
 * Those of this exponent are normal, and are rounded to 0 as well.
 */
const SMALLEST_EXPONENT = -80;

/** How far the largest of a matrix row's rotated values lies above their root mean square, as in a normal distribution. */
const LARGEST_OVER_USUAL = 3.2;

/** What the sizes of values are estimated from. */
export interface ValueWeights {
  /** Norms and biases. */
  readonly weights: WeightTensors;
  /** The scale of each output channel [out] of a quantized matrix. */
  readonly scalesOf: (name: string) => Tensor;
}

/**
 * Gives an attention rounded values (X1). Gradients pass through the rounding.
 *
 * A value is the product of a normed input, whose channels are about as large as the norm's weights, and a row of the matrix.
 */
export function attendRounded(spec: ModelSpec, { weights, scalesOf }: ValueWeights, attend: Attend): Attend {
  const part = "self_attn.v_proj";
  const perHead = (x: Tensor) => ReduceMean(Reshape(x, [spec.numKeyValueHeads, spec.headDim]), { axes: [1] });
  return function roundAndAttend(layer, q, k, v) {
    const norm = weights[layerParameter(layer, "input_layernorm")]!;
    const inputs = Sqrt(ReduceSum(Mul(norm, norm)));
    const rows = Mul(perHead(scalesOf(layerParameter(layer, part))), LARGEST_QUANTIZED / LARGEST_OVER_USUAL);
    const products_G1 = Mul(rows, inputs);
    const sizes_G1 = hasBias(spec, part)
      ? Add(products_G1, perHead(Abs(weights[layerBias(layer, part)]!)))
      : products_G1;
    const rounded = roundBy(v, Mul(nearPowerOfTwo(sizes_G1), TO_VALUE));
    return attend(layer, q, k, StraightThrough(rounded, v));
  };
}

/**
 * What {@link exactShares} rounds the exponentials of queries at these positions by (X2): each sees the tokens before it and itself.
 *
 * @param positions whole numbers of any type and shape @returns float32, in this shape
 */
export function summedRounding(positions: Tensor): Tensor {
  const seen = Add(Cast(positions, "float32"), 1);
  return Mul(nearPowerOfTwo(Max(seen, 2)), TO_SUMMED);
}

/** The numerators and the denominator of softmax over the last axis. */
export interface ExactShares {
  /** In the shape of the scores, rounded; 0 where a score is masked. */
  readonly numerators: Tensor;
  /** [..., 1] */
  readonly total: Tensor;
}

/** @param rounding {@link summedRounding} of the rows of scores */
export function exactShares(scores: Tensor, rounding: Tensor): ExactShares {
  const below = Sub(scores, ReduceMax(scores, { axes: [-1] }));
  const exponentials = Exp(Max(below, SMALLEST_EXPONENT));
  const total = ReduceSum(roundBy(exponentials, rounding), { axes: [-1] });
  return { numerators: roundBy(exponentials, Mul(nearPowerOfTwo(total), TO_FACTOR)), total };
}

/** `groupedAttention` over {@link attendRounded} values. @param rounding [B, 1, R*T, 1] {@link summedRounding} of the queries */
export function exactAttention(
  q: Tensor,
  keys: Tensor,
  values: Tensor,
  bias: Tensor,
  rounding: Tensor,
): Tensor {
  const { numerators, total } = exactShares(groupedScores(q, keys, bias), rounding);
  return fromGroups(Div(MatMul(numerators, values), total), q);
}

/** Rounds to multiples of a unit, a power of two. @param rounding {@link TO_WHOLE} units */
function roundBy(x: Tensor, rounding: Tensor): Tensor {
  return Sub(Add(x, rounding), rounding);
}

/**
 * A power of two between 2/3 and 4/3 of a positive number: its upper part where it is split after the first bit, as Veltkamp splits
 * (T. J. Dekker, A floating-point technique for extending the available precision, 1971).
 */
export function nearPowerOfTwo(x: Tensor): Tensor {
  const shifted = Mul(x, 2 ** 23 + 1);
  return Sub(shifted, Sub(shifted, x));
}
