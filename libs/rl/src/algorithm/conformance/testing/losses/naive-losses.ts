/** Formulas of losses once more, without Hone's code and without an engine: what is expected where Hone answers a quirk otherwise. */

import type { Matrix } from "../golden.ts";

/** A token's loss and its derivative with respect to the log-probability. */
export type Point = readonly [value: number, derivative: number];

/** Sums over the tokens that have a weight. */
export function naiveLoss(
  weights: Matrix,
  pointAt: (row: number, position: number) => Point,
): { loss: number; gradient: number[][] } {
  let loss = 0;
  const gradient = weights.map((row, i) =>
    row.map((weight, t) => {
      if (weight === 0) return 0;
      const [value, derivative] = pointAt(i, t);
      loss += weight * value;
      return weight * derivative;
    }),
  );
  return { loss, gradient };
}

/** -A log pi + (beta / 2) (log pi - log behaviour)^2 */
export function squaredDistance(logprob: number, behaviour: number, advantage: number, beta: number): Point {
  const distance = logprob - behaviour;
  return [-advantage * logprob + (beta / 2) * distance * distance, -advantage + beta * distance];
}

/** -r A, clipped where low and high are given, with the log ratio kept within 20. */
export function surrogate(
  logprob: number,
  behaviour: number,
  advantage: number,
  low = Number.POSITIVE_INFINITY,
  high = Number.POSITIVE_INFINITY,
): Point {
  const logRatio = logprob - behaviour;
  const ratio = Math.exp(Math.max(-20, Math.min(20, logRatio)));
  const slope = Math.abs(logRatio) > 20 ? 0 : ratio;
  if (advantage > 0 && ratio > 1 + high) return [-(1 + high) * advantage, 0];
  if (advantage < 0 && ratio < 1 - low) return [-(1 - low) * advantage, 0];
  return [-ratio * advantage, -slope * advantage];
}

/** e^d - d - 1 with d = log reference - log pi. */
export function k3(logprob: number, reference: number): Point {
  const d = reference - logprob;
  return [Math.exp(d) - d - 1, 1 - Math.exp(d)];
}

/** Indices (row, position) of tokens in falling order of their covariance, with those of equal covariance in their order. */
export function byCovariance(
  mask: Matrix,
  logprob: Matrix,
  advantage: Matrix,
): { readonly row: number; readonly position: number; readonly covariance: number }[] {
  const tokens = mask.flatMap((row, i) =>
    row.flatMap((bit, t) => (bit === 1 ? [{ row: i, position: t }] : [])),
  );
  const mean = (values: Matrix) =>
    tokens.reduce((sum, { row, position }) => sum + values[row]![position]!, 0) / tokens.length;
  const [meanLogprob, meanAdvantage] = [mean(logprob), mean(advantage)];
  return tokens
    .map(({ row, position }) => ({
      row,
      position,
      covariance: (advantage[row]![position]! - meanAdvantage) * (logprob[row]![position]! - meanLogprob),
    }))
    .sort((a, b) => b.covariance - a.covariance);
}
