/**
 * By what a token or a sample is found to be too far from what was sampled. With the log ratio x = log old - log behaviour:
 *
 *   ratio        e^x, taken over the log ratios of a unit first: the ratio of a turn or sample is that of its mean or sum
 *   difference   old - behaviour, as probabilities (ROLL's `diff`)
 *   k1           -x
 *   k2           x^2 / 2
 *   k3           e^x - 1 - x
 *
 * k1, k2 and k3 estimate KL(behaviour || old), http://joschu.net/blog/kl-approx.html; x counts within 20 in them. Bounds hold for
 * the number itself: those of `ratio` for old / behaviour, and those of k1 for a logarithm.
 */

import { MAX_LOG_RATIO } from "../loss/token-numbers.ts";
import { clip } from "../statistics.ts";
import { type Level, type Pooled, pool } from "./level.ts";
import type { ComparedTokens } from "./tokens.ts";

/** Fixed vocabulary of the run file. */
export const Measure = { ratio: "ratio", difference: "difference", k1: "k1", k2: "k2", k3: "k3" } as const;
export type Measure = (typeof Measure)[keyof typeof Measure];

/** What a measure is where old and behaviour are the same. */
export function neutralOf(measure: Measure): number {
  return measure === Measure.ratio ? 1 : 0;
}

/** e^x, where x counts within 20 so that products of ratios stay finite. */
export function ratioOf(logRatio: number): number {
  return Math.exp(clip(logRatio, MAX_LOG_RATIO));
}

/** e^x - 1 - x, with the same bound. */
export function k3Of(logRatio: number): number {
  const bounded = clip(logRatio, MAX_LOG_RATIO);
  return Math.exp(bounded) - 1 - bounded;
}

/** The measure of each unit. */
export function measureUnits(measure: Measure, level: Level, tokens: ComparedTokens): Pooled {
  if (measure !== Measure.ratio) return pool(measureTokens(measure, tokens), level, tokens);
  const { values, unitOf } = pool(tokens.logRatios, level, tokens);
  return { values: values.map(ratioOf), unitOf };
}

/** [N] */
function measureTokens(
  measure: Exclude<Measure, "ratio">,
  { logRatios, oldLogprobs, behaviourLogprobs }: ComparedTokens,
): Float64Array {
  switch (measure) {
    case Measure.difference:
      return logRatios.map((_, token) => Math.exp(oldLogprobs[token]!) - Math.exp(behaviourLogprobs[token]!));
    case Measure.k1:
      return logRatios.map((x) => -clip(x, MAX_LOG_RATIO));
    case Measure.k2:
      return logRatios.map((x) => clip(x, MAX_LOG_RATIO) ** 2 / 2);
    case Measure.k3:
      return logRatios.map(k3Of);
    default:
      return measure satisfies never;
  }
}
