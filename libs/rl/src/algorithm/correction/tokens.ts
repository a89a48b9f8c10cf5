/**
 * The sampled tokens whose rollouts are corrected, and what is said of each.
 *
 * Rollouts are sampled with other numbers than those that the training engine computes for the same weights (another kernel,
 * another precision) and often by older weights. Both show in the log ratio of a token:
 *
 *   x = log old(token) - log behaviour(token)
 *
 * behaviour = the probability that was recorded when the token was sampled, old = the one that the training engine computes
 * before the first update of the step. Letters: N sampled tokens over all samples, in the order of (sample, token).
 */

import { BrokenRecordError } from "../../errors.ts";
import { groupsOf, renumber } from "../../packing/groups.ts";
import type { MaskedTokens } from "../../rollout.ts";

/** Sampled tokens with both of their log-probabilities. */
export interface ComparedTokens {
  /** [N] by the training engine, before the first update of the step. */
  readonly oldLogprobs: ArrayLike<number>;
  /** [N] recorded when the token was sampled. */
  readonly behaviourLogprobs: ArrayLike<number>;
  /** [N] x. */
  readonly logRatios: Float64Array;
  /** [N] the number of the token's sample, from 0; samples in which nothing was sampled have none. */
  readonly sequences: ArrayLike<number>;
  /** [N] the number of the token's segment, from 0: an unbroken run of sampled tokens, which is a turn. */
  readonly segments: ArrayLike<number>;
}

/**
 * Puts the log-probabilities of a step's samples together.
 * @throws {BrokenRecordError} when a sampled token lacks one of them, or when one is not finite.
 */
export function compareTokens(
  samples: readonly Pick<MaskedTokens, "lossMask">[],
  oldLogprobs: ArrayLike<number>,
  behaviourLogprobs: ArrayLike<number>,
): ComparedTokens {
  const segments = groupsOf(samples, "segment");
  const count = segments.length;
  for (const [name, { length }] of Object.entries({ oldLogprobs, behaviourLogprobs })) {
    if (length !== count) {
      throw new BrokenRecordError(
        `the samples have ${count} sampled tokens and ${length} ${name}; each sampled token has one`,
      );
    }
  }
  const logRatios = new Float64Array(count);
  for (let token = 0; token < count; token++) {
    logRatios[token] = oldLogprobs[token]! - behaviourLogprobs[token]!;
    if (!Number.isFinite(logRatios[token]!)) {
      throw new BrokenRecordError(
        `sampled token ${token} has the old logprob ${oldLogprobs[token]} and the behaviour logprob ${behaviourLogprobs[token]}; both must be finite`,
      );
    }
  }
  const sequences = renumber(groupsOf(samples, "sequence"));
  return { oldLogprobs, behaviourLogprobs, logRatios, sequences, segments };
}
