/**
 * How far each token moves the entropy (Cui et al., "The Entropy Mechanism of Reinforcement Learning for Reasoning Language
 * Models", https://arxiv.org/abs/2505.22617), with means over all tokens of the minibatch:
 *
 *   cov = (A - mean of A) (log pi(token) - mean of log pi)
 */

import { meanOf } from "../../statistics.ts";
import type { ScoredTokens } from "../loss.ts";

/** [N] */
export function covariances({ logprobs, advantages }: ScoredTokens): number[] {
  const meanLogprob = meanOf(Array.from(logprobs));
  const meanAdvantage = meanOf(Array.from(advantages));
  return Array.from(
    logprobs,
    (logprob, token) => (advantages[token]! - meanAdvantage) * (logprob - meanLogprob),
  );
}

/** How many of `tokenCount` tokens a share is; at least one. */
export function countOf(share: number, tokenCount: number): number {
  return Math.max(1, Math.floor(share * tokenCount));
}
