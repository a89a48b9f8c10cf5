/**
 * What both kinds of divergence PPO (https://arxiv.org/abs/2602.04879) share: a token loses its gradient where its
 * distribution has moved too far, not where its ratio has. With r = pi(token) / behaviour(token), the bound c, sg = without a
 * gradient, and D the divergence of the two distributions, reduced to "this token or another one":
 *
 *   l = 0                                  where pi moved in the direction of A, and D > the threshold
 *   l = -sg(min(r, c)) A log pi(token)     elsewhere
 */

import { z } from "zod";
import type { TokenFigures } from "../loss.ts";
import { boundedRatio } from "../ratio.ts";
import { TokenCut } from "../token-cut.ts";

export interface DppoConstants {
  readonly thresholdLow: number;
  readonly thresholdHigh: number;
  readonly maxRatio: number;
}

/** Keys of the run file. @param threshold the default of both thresholds */
export function dppoOptions(threshold: number) {
  return {
    /** Threshold where the advantage is not above 0 and the token became less likely. */
    thresholdLow: z.number().gt(0).default(threshold),
    /** Threshold where the advantage is above 0 and the token became more likely. */
    thresholdHigh: z.number().gt(0).default(threshold),
    /** The ratio counts up to this. */
    maxRatio: z.number().min(1).default(20),
  };
}

export const dppoConstants = z.strictObject({
  thresholdLow: z.number().min(0),
  thresholdHigh: z.number().min(0),
  maxRatio: z.number().positive(),
});

/** Divergence of the two distributions, from the token's probabilities now and when it was sampled. */
type Divergence = (probability: number, behaviour: number) => number;

/** What is left out, and where the ratio is at its bound. */
export function dppoCut(token: TokenFigures, constants: DppoConstants, divergence: Divergence): TokenCut {
  if (hasMovedTooFar(token, constants, divergence)) return TokenCut.mask;
  return token.ratio > constants.maxRatio ? TokenCut.bound : TokenCut.none;
}

/** -min(r, c) A, and 0 for what is left out. */
export function dppoSlope(token: TokenFigures, constants: DppoConstants, divergence: Divergence): number {
  if (hasMovedTooFar(token, constants, divergence)) return 0;
  return -token.advantage * Math.min(constants.maxRatio, boundedRatio(token.ratio));
}

function hasMovedTooFar(
  { logprob, behaviourLogprob, advantage }: TokenFigures,
  { thresholdLow, thresholdHigh }: DppoConstants,
  divergence: Divergence,
): boolean {
  const [now, then] = [Math.exp(logprob), Math.exp(behaviourLogprob)];
  const distance = divergence(now, then);
  return advantage > 0 ? now > then && distance > thresholdHigh : now < then && distance > thresholdLow;
}
