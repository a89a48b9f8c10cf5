/**
 * Attention in eight bits, whose sums have no order.
 *
 * A sum of float32 numbers depends on their order, as every addition rounds. Sums of whole numbers do not, nor do those of float32 numbers that
 * are whole multiples of one unit and stay below 2^24 units. So a token's result has the same bits in any layout, beside anything,
 * however long its context, and generation and training compute the same:
 *
 *   X1: the queries, keys and values of each head are rounded to eight bits, by a scale for each token and head. Scores are products of
 *       whole numbers, times both scales.
 *   X2: e^(score - largest score) is rounded, for its sum, to 2^-23 of a power of two near the number of tokens that are seen. The sum is
 *       at most this number.
 *   X3: as a factor of the values it is multiplied by their scales and rounded to 1/65535 of the largest such factor of the query, as two
 *       digits of eight bits. One digit is not enough: of two thousand tokens most have less than 1/255 of it, and together much.
 *
 * Letters: D head size, R queries, L tokens that are read, `...` axes of sequences and heads.
 */
import {
  Add,
  Cast,
  Concat,
  Div,
  type EightBitType,
  Exp,
  Floor,
  MatMulInteger,
  MatMulIntegerToFloat,
  Max,
  Mul,
  QuantizeLinear,
  ReduceMax,
  ReduceSum,
  Reshape,
  Sub,
  type Tensor,
  Transpose,
} from "@hone/tensor";
import { operand, zeroOf } from "../quantization/quantized-linear.ts";
import { LEFT_TYPE, type RoundedRows, type RowRounding } from "../quantization/row-rounding.ts";
import { fromGroups, toGroups } from "./attention.ts";

/** Added to a number below 2^22, and subtracted again, it leaves the nearest whole number: float32 values of this size are 1 apart. */
const TO_WHOLE = 1.5 * 2 ** 23;
/** The same for multiples of the unit of X2, as a share of its power of two. */
const TO_SUMMED = 2 ** -23 * TO_WHOLE;

/**
 * The exponentials of masked scores would be numbers below float32's normal ones, which processors take ten times as long to compute.
 * Those of this exponent are normal, and are rounded to 0 as well.
 */
const SMALLEST_EXPONENT = -80;

/** The second digit's values for one of the first, and the most that both express. */
const DIGIT = 256;
const LARGEST_FACTOR = DIGIT ** 2 - 1;
/** Divided by instead of a largest factor of 0, which queries have that see zeros only. */
const SMALLEST_FACTOR = 1e-30;

/**
 * What {@link eightBitShares} rounds the exponentials of queries at these positions by (X2): each sees the tokens before it and itself.
 *
 * @param positions whole numbers of any type and shape @returns float32, in this shape
 */
export function summedRounding(positions: Tensor): Tensor {
  const seen = Add(Cast(positions, "float32"), 1);
  return Mul(nearPowerOfTwo(Max(seen, 2)), TO_SUMMED);
}

/** Rounds queries [..., R, D]; their scales include 1 / sqrt(D). */
export function roundQueries(rows: RowRounding, q: Tensor): RoundedRows {
  const { values, scales } = rows.round(q, LEFT_TYPE);
  return { values, scales: Mul(scales, 1 / Math.sqrt(Number(q.shape.at(-1)))) };
}

/**
 * Scores before they are multiplied by the scales of queries.
 * @param queries [..., R, D] rounded @param keys [..., D, L] rounded @param scales of the keys [..., 1, L] @returns [..., R, L]
 */
export function keyProducts(queries: Tensor, keys: Tensor, scales: Tensor): Tensor {
  return MatMulIntegerToFloat(operand(queries), operand(keys, scales));
}

/** How much of each value a query takes. */
export interface EightBitShares {
  /** [..., 2*R, L] uint8, the first digit of each query, then the second (X3); 0 where a score is masked. */
  readonly digits: Tensor;
  /** [..., R, 1] what a unit of the second digit stands for. */
  readonly unit: Tensor;
}

/**
 * @param scores [..., R, L] @param valueScales [..., 1, L]
 * @param rounding {@link summedRounding} of the rows of scores
 */
export function eightBitShares(scores: Tensor, valueScales: Tensor, rounding: Tensor): EightBitShares {
  const { graph } = scores;
  const below = Sub(scores, ReduceMax(scores, { axes: [-1] }));
  const exponentials = Exp(Max(below, SMALLEST_EXPONENT));
  const total = ReduceSum(roundBy(exponentials, rounding), { axes: [-1] });
  const factors = Mul(exponentials, valueScales);
  const largest = Max(ReduceMax(factors, { axes: [-1] }), SMALLEST_FACTOR);
  const inDigits = Mul(factors, Div(LARGEST_FACTOR / DIGIT, largest));
  const whole = Floor(inDigits);
  const zero = graph.scalar("uint8", 0);
  const rest = QuantizeLinear(Sub(inDigits, whole), graph.scalar("float32", 1 / DIGIT), zero, 0);
  const digits = Concat([Cast(whole, "uint8"), rest], scores.shape.length - 2);
  return { digits, unit: Div(Mul(largest, 1 / LARGEST_FACTOR), total) };
}

/** Sums of values by both digits. @param digits [..., N, L] @param values [..., L, D] rounded @returns int32 [..., N, D] */
export function valueSums(digits: Tensor, values: Tensor): Tensor {
  const { graph } = values;
  return MatMulInteger(
    { values: digits, zeroPoint: graph.scalar("uint8", 0) },
    { values, zeroPoint: zeroOf(graph, values.dtype as EightBitType) },
  );
}

/** What queries mix, of the sums by their digits. @param sums int32 [..., 2*R, D] @param unit [..., R, 1] @returns [..., R, D] */
export function mixedValues(sums: Tensor, unit: Tensor): Tensor {
  const weights = sums.graph.constant("float32", [DIGIT, 1], [2, 1, 1]);
  const axis = sums.shape.length - 2;
  const shape = [...unit.shape.slice(0, -1), sums.shape.at(-1)!];
  const byDigit = Reshape(Cast(sums, "float32"), shape.toSpliced(axis, 0, 2));
  return Mul(ReduceSum(Mul(byDigit, weights), { axes: [axis], keepDims: false }), unit);
}

/**
 * `groupedAttention` in eight bits. It has no gradient.
 *
 * @param q [B, T, H, D]; keys and values are [B, G, S, D], rounded.
 * @param bias [B, 1, R*T, S] @param rounding [B, 1, R*T, 1] {@link summedRounding} of the queries
 * @returns [B, T, H*D]
 */
export function eightBitAttention(
  rows: RowRounding,
  q: Tensor,
  keys: RoundedRows,
  values: RoundedRows,
  bias: Tensor,
  rounding: Tensor,
): Tensor {
  const queries = roundQueries(rows, toGroups(q, Number(keys.values.shape[1])));
  return fromGroups(attendRounded(queries, keys, values, bias, rounding), q);
}

/** The same for queries [..., R, D], keys and values [..., L, D]. @param bias [..., R, L] @returns [..., R, D] */
export function attendRounded(
  queries: RoundedRows,
  keys: RoundedRows,
  values: RoundedRows,
  bias: Tensor,
  rounding: Tensor,
): Tensor {
  const products = keyProducts(queries.values, swapLast(keys.values), swapLast(keys.scales));
  const scores = Add(Mul(products, queries.scales), bias);
  const { digits, unit } = eightBitShares(scores, swapLast(values.scales), rounding);
  return mixedValues(valueSums(digits, values.values), unit);
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

/** Exchanges the last two axes. */
export function swapLast(x: Tensor): Tensor {
  const axes = x.shape.map((_, axis) => axis);
  return Transpose(x, [...axes.slice(0, -2), axes.length - 1, axes.length - 2]);
}
