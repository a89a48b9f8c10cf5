/** Figures of many numbers. */

import { sampleStd } from "../statistics.ts";

/** Numbers of a step by name, shown as `correction/<name>`. */
export type Figures = Readonly<Record<string, number>>;

/** Either bound may be absent. */
export interface Bounds {
  readonly lower: number | null;
  readonly upper: number | null;
}

/** The mean; 0 of no numbers. */
export function meanValue(values: Float64Array): number {
  let sum = 0;
  for (const value of values) sum += value;
  return values.length === 0 ? 0 : sum / values.length;
}

/** The share of the numbers for which something holds; 0 of no numbers. */
export function shareOf(values: Float64Array, holds: (value: number, index: number) => boolean): number {
  let count = 0;
  values.forEach((value, index) => {
    if (holds(value, index)) count++;
  });
  return values.length === 0 ? 0 : count / values.length;
}

/** `<name>/max` and `<name>/min` of at least one number. */
export function rangeFigures(name: string, values: Float64Array): Figures {
  let max = Number.NEGATIVE_INFINITY;
  let min = Number.POSITIVE_INFINITY;
  for (const value of values) {
    max = Math.max(max, value);
    min = Math.min(min, value);
  }
  return { [`${name}/max`]: max, [`${name}/min`]: min };
}

/** `<name>/high/share` and `<name>/low/share`: of numbers above and below the bounds, where there are such. */
export function outsideFigures(name: string, values: Float64Array, { lower, upper }: Bounds): Figures {
  return {
    ...(upper !== null && { [`${name}/high/share`]: shareOf(values, (value) => value > upper) }),
    ...(lower !== null && { [`${name}/low/share`]: shareOf(values, (value) => value < lower) }),
  };
}

/**
 * Mean, deviation (divisor n - 1), extremes and largest distance from what they would be without a mismatch.
 * @param samples [S] one number for each sample, at least one.
 */
export function sampleFigures(name: string, samples: Float64Array, neutral: number): Figures {
  return {
    [`${name}/mean`]: meanValue(samples),
    [`${name}/std`]: sampleStd(Array.from(samples)),
    ...rangeFigures(name, samples),
    [`${name}/deviation/max`]: samples.reduce((most, value) => Math.max(most, Math.abs(value - neutral)), 0),
  };
}
