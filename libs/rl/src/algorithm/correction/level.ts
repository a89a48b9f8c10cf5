/**
 * Over which tokens a number is taken before it is bounded. With numbers v of tokens:
 *
 *   token           v of the token
 *   segment_mean    mean of v over the token's segment, which is a turn (ROLL's `segment`)
 *   sequence_mean   mean of v over the token's sample; of log ratios, the log of their geometric mean (ROLL's `geometric`)
 *   sequence_sum    sum of v over the token's sample; of log ratios, the log of the ratio of the whole sample
 *   sequence_max    largest v of the token's sample
 *
 * Tokens that are taken together are a unit: they share one number, and are bounded or rejected together.
 */

import type { ComparedTokens } from "./tokens.ts";

/** Fixed vocabulary of the run file. */
export const Level = {
  token: "token",
  segmentMean: "segment_mean",
  sequenceMean: "sequence_mean",
  sequenceSum: "sequence_sum",
  sequenceMax: "sequence_max",
} as const;
export type Level = (typeof Level)[keyof typeof Level];

/** One number for each unit. U units of N tokens. */
export interface Pooled {
  /** [U] */
  readonly values: Float64Array;
  /** [N] the unit of each token. */
  readonly unitOf: ArrayLike<number>;
}

/** @param values [N] numbers of tokens. */
export function pool(
  values: Float64Array,
  level: Level,
  tokens: Pick<ComparedTokens, "sequences" | "segments">,
): Pooled {
  if (level === Level.token) return { values, unitOf: values.map((_, token) => token) };
  const unitOf = level === Level.segmentMean ? tokens.segments : tokens.sequences;
  // Units are numbered from 0 in the order of their tokens.
  const unitCount = values.length === 0 ? 0 : unitOf[values.length - 1]! + 1;
  const isMax = level === Level.sequenceMax;
  const pooled = new Float64Array(unitCount).fill(isMax ? Number.NEGATIVE_INFINITY : 0);
  const counts = new Float64Array(unitCount);
  for (let token = 0; token < values.length; token++) {
    const unit = unitOf[token]!;
    pooled[unit] = isMax ? Math.max(pooled[unit]!, values[token]!) : pooled[unit]! + values[token]!;
    counts[unit]!++;
  }
  const isMean = level === Level.segmentMean || level === Level.sequenceMean;
  return { values: isMean ? pooled.map((sum, unit) => sum / counts[unit]!) : pooled, unitOf };
}

/** [N] the number of each token's unit. */
export function spreadOver({ values, unitOf }: Pooled): Float64Array {
  return Float64Array.from(unitOf, (unit) => values[unit]!);
}
