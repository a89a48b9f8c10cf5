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
 *   X3: as a factor of the values it is multiplied by their scales and rounded to 1/32512 of the largest such factor of the query, as two
 *       digits of eight bits. One digit is not enough: of two thousand tokens most have less than 1/127 of it, and together much.
 *
 * Letters: D head size, R queries, L tokens that are read, `...` axes of sequences and heads.
 */
import {
  Add,
  Cast,
  DequantizeLinear,
  Div,
  Exp,
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
import { LARGEST_QUANTIZED } from "../quantization/matrix-quantizer.ts";
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

/** A unit of the first digit in units of the second. */
const DIGIT = 256;
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

/** Rounds queries [..., D]. */
export function roundQueries(rows: RowRounding, q: Tensor): RoundedRows {
  return rows.round(q, LEFT_TYPE);
}

/**
 * Scores before they are multiplied by the scales of queries.
 * @param queries [..., R, D] rounded @param keys [..., D, L] rounded @param scales of the keys [..., 1, L] @returns [..., R, L]
 */
export function keyProducts(queries: Tensor, keys: Tensor, scales: Tensor): Tensor {
  const factor = queries.graph.scalar("float32", 1 / Math.sqrt(Number(queries.shape.at(-1))));
  return MatMulIntegerToFloat(operand(queries, factor), operand(keys, scales));
}

/** Rows that queries attend to. */
export interface AttendedRows {
  /** [..., D, L] rounded keys, as columns */
  readonly keys: Tensor;
  /** [..., 1, L] */
  readonly keyScales: Tensor;
  /** [..., L, D] rounded values */
  readonly values: Tensor;
  /** [..., 1, L] */
  readonly valueScales: Tensor;
}

/** @param keys and values [..., L, D] */
export function attendedRows(keys: RoundedRows, values: RoundedRows): AttendedRows {
  return {
    keys: swapLast(keys.values),
    keyScales: swapLast(keys.scales),
    values: values.values,
    valueScales: swapLast(values.scales),
  };
}

/** How much of each value a query takes, in two digits (X3); 0 where a score is masked. */
export interface EightBitShares {
  /** [..., R, L] rounded; a unit is {@link DIGIT} units of the second digit */
  readonly first: Tensor;
  /** [..., R, L] rounded: what the first digit leaves */
  readonly second: Tensor;
  /** [..., R, 1] what a unit of the second digit stands for */
  readonly unit: Tensor;
}

/**
 * @param scores [..., R, L] @param valueScales [..., 1, L]
 * @param rounding {@link summedRounding} of the rows of scores
 */
export function eightBitShares(scores: Tensor, valueScales: Tensor, rounding: Tensor): EightBitShares {
  const below = Sub(scores, ReduceMax(scores, { axes: [-1] }));
  const exponentials = Exp(Max(below, SMALLEST_EXPONENT));
  const total = ReduceSum(roundBy(exponentials, rounding), { axes: [-1] });
  const factors = Mul(exponentials, valueScales);
  const largest = Max(ReduceMax(factors, { axes: [-1] }), SMALLEST_FACTOR);
  const inDigits = Mul(factors, Div(LARGEST_QUANTIZED, largest));
  const first = toWhole(inDigits, 1);
  const second = toWhole(Sub(inDigits, fromWhole(first)), 1 / DIGIT);
  return { first, second, unit: Div(Mul(largest, 1 / (LARGEST_QUANTIZED * DIGIT)), total) };
}

/** Sums of rounded values by both digits [..., 2*R, L], first those by the first digits. @returns int32 [..., 2*R, D] */
export function valueSums(digits: Tensor, values: Tensor): Tensor {
  return MatMulInteger(operand(digits), operand(values));
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
  return fromGroups(attendRounded(queries, attendedRows(keys, values), bias, rounding), q);
}

/** The same for queries [..., R, D]. @param bias [..., R, L] @returns [..., R, D] */
export function attendRounded(
  queries: RoundedRows,
  { keys, keyScales, values, valueScales }: AttendedRows,
  bias: Tensor,
  rounding: Tensor,
): Tensor {
  const scores = Add(Mul(keyProducts(queries.values, keys, keyScales), queries.scales), bias);
  const { first, second, unit } = eightBitShares(scores, valueScales, rounding);
  // The same numbers as `mixedValues` has, without its passes: a product that is scaled adds up whole numbers, too.
  const sumsBy = (digit: Tensor, scale: number) =>
    MatMulIntegerToFloat(operand(digit, digit.graph.scalar("float32", scale)), operand(values));
  return Mul(Add(sumsBy(first, DIGIT), sumsBy(second, 1)), unit);
}

/** Rounds to whole multiples of a unit. */
function toWhole(x: Tensor, unit: number): Tensor {
  return QuantizeLinear(x, x.graph.scalar("float32", unit), zeroOf(x.graph, LEFT_TYPE), 0);
}

/** The whole numbers as float32. */
function fromWhole(x: Tensor): Tensor {
  return DequantizeLinear(x, x.graph.scalar("float32", 1), zeroOf(x.graph, LEFT_TYPE), 0);
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
