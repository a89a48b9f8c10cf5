/**
 * Means, deviations and whitening of the numbers of a step.
 *
 * Sums run in the order given, so that the same step makes the same bytes. Equal numbers are found by comparing them: the
 * deviation of [0.1, 0.1, 0.1] is 1.7e-17 and not 0, and a division by it would make something of nothing.
 */

/** Added to a variance before its root is taken, as verl and ROLL do. */
const WHITEN_EPSILON = 1e-8;

/** The sum; 0 of no numbers. */
export function sumOf(values: ArrayLike<number>): number {
  let sum = 0;
  for (let at = 0; at < values.length; at++) sum += values[at]!;
  return sum;
}

/** The mean; 0 of no numbers. */
export function meanOf(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((total, value) => total + value, 0) / values.length;
}

/** Whether all numbers are equal, as those of a group are that says nothing; true of one number and of none. */
export function isFlat(values: readonly number[]): boolean {
  return values.every((value) => value === values[0]);
}

/** The variance of all of a population (divisor n); 0 where all numbers are equal. */
export function varianceOf(values: readonly number[]): number {
  if (isFlat(values)) return 0;
  const mean = meanOf(values);
  return meanOf(values.map((value) => (value - mean) ** 2));
}

/** The sample deviation (divisor n - 1); 0 where all numbers are equal. */
export function sampleStd(values: readonly number[]): number {
  if (isFlat(values)) return 0;
  const mean = meanOf(values);
  const squares = values.reduce((total, value) => total + (value - mean) ** 2, 0);
  return Math.sqrt(squares / (values.length - 1));
}

/** A number that stands for `count` equal ones. */
export interface Repeated {
  readonly value: number;
  readonly count: number;
}

/**
 * Whitening: x -> (x - mean) / sqrt(variance + 1e-8), with the divisor n - 1.
 * @param values over which mean and variance are taken.
 * @param shiftMean whether the mean is taken off; false adds it again after the division.
 * @returns what to do with each number. Of equal numbers it makes 0, or, with their mean, what they are.
 */
export function whitenerOf(
  values: readonly Repeated[],
  { shiftMean = true } = {},
): (value: number) => number {
  const { mean, scale, isEqual } = whiteningOf(values);
  if (isEqual) return () => (shiftMean ? 0 : mean);
  return (value) => (value - mean) / scale + (shiftMean ? 0 : mean);
}

/** Mean and scale of whitening. Of equal numbers the mean is what they are, and the scale 1, so that they become 0. */
export function whiteningOf(values: readonly Repeated[]): {
  readonly mean: number;
  readonly scale: number;
  readonly isEqual: boolean;
} {
  const present = values.filter(({ count }) => count > 0);
  const total = present.reduce((sum, { count }) => sum + count, 0);
  const isEqual = present.every(({ value }) => value === present[0]?.value);
  if (isEqual) return { mean: present[0]?.value ?? 0, scale: 1, isEqual };
  const mean = present.reduce((sum, { value, count }) => sum + value * count, 0) / total;
  const squares = present.reduce((sum, { value, count }) => sum + (value - mean) ** 2 * count, 0);
  return { mean, scale: Math.sqrt(squares / (total - 1) + WHITEN_EPSILON), isEqual };
}

/** Keeps a number within [-limit, limit]; null = it stays as it is. */
export function clip(value: number, limit: number | null): number {
  return limit === null ? value : Math.max(-limit, Math.min(limit, value));
}
