/** The formulas once more, on rows with a mask and without Hone's code: what is expected where Hone answers a quirk otherwise. */

import type { Matrix } from "./golden.ts";

export function mean(values: readonly number[]): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}

/** Divisor n - 1. */
export function std(values: readonly number[]): number {
  const middle = mean(values);
  let squares = 0;
  for (const value of values) squares += (value - middle) * (value - middle);
  return Math.sqrt(squares / (values.length - 1));
}

/** (x - mean) / sqrt(variance + 1e-8) under the mask, 0 elsewhere. */
export function whiten(values: Matrix, mask: Matrix): number[][] {
  const present = values.flatMap((row, i) => row.filter((_, t) => mask[i]![t] === 1));
  const middle = mean(present);
  const scale = Math.sqrt(std(present) ** 2 + 1e-8);
  return values.map((row, i) => row.map((value, t) => (mask[i]![t] === 1 ? (value - middle) / scale : 0)));
}

/** Rewards that follow, of sampled tokens only, each counting less by gamma for each sampled token between. */
export function returnsUnderMask(
  rewards: readonly number[],
  mask: readonly number[],
  gamma: number,
): number[] {
  return mask.map((bit, t) => {
    if (bit === 0) return 0;
    let sum = 0;
    let factor = 1;
    for (let later = t; later < mask.length; later++) {
      if (mask[later] === 0) continue;
      sum += factor * rewards[later]!;
      factor *= gamma;
    }
    return sum;
  });
}

/** Generalized advantages that pass over what was not sampled. */
export function gaeUnderMask(
  rewards: readonly number[],
  values: readonly number[],
  mask: readonly number[],
  gamma: number,
  lambda: number,
): number[] {
  const advantages = mask.map(() => 0);
  let nextValue = 0;
  let carried = 0;
  for (let t = mask.length - 1; t >= 0; t--) {
    if (mask[t] === 0) continue;
    carried = rewards[t]! + gamma * nextValue - values[t]! + gamma * lambda * carried;
    advantages[t] = carried;
    nextValue = values[t]!;
  }
  return advantages;
}

/** Indices by name. */
export function indicesBy(names: readonly string[]): number[][] {
  return [...new Set(names)].map((name) => names.flatMap((each, index) => (each === name ? [index] : [])));
}
