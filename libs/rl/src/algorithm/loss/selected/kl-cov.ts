/**
 * The policy gradient, with tokens of the highest covariance held near the policy that sampled them (KL-Cov,
 * https://arxiv.org/abs/2505.22617, equation 14). With d = log pi(token) - log behaviour(token), r = e^d, and the share of
 * the minibatch's tokens that has the highest covariance (covariance.ts):
 *
 *   l = -r A + coefficient |d|     where the token is chosen
 *   l = -r A                       elsewhere
 */

import { z } from "zod";
import { definePolicyLoss } from "../loss.ts";
import { ratioSlope } from "../ratio.ts";
import { TokenCut } from "../token-cut.ts";
import { MAX_LOG_RATIO } from "../token-numbers.ts";
import { countOf, covariances } from "./covariance.ts";

export const klCov = definePolicyLoss({
  name: "kl_cov",
  options: {
    /** Share of the minibatch's tokens that are held; at least one is. */
    share: z.number().gt(0).max(1).default(2e-4),
    /** Weight of |d|. */
    coefficient: z.number().gt(0).default(1),
  },
  trainsWithoutAdvantage: true,
  reads: ["behaviourLogprob", "advantage", "selected"],
  constants: z.strictObject({ share: z.number().positive().max(1), coefficient: z.number().positive() }),
  constantsOf: ({ share, coefficient }) => ({ share, coefficient }),
  cut: ({ isSelected }) => (isSelected ? TokenCut.selected : TokenCut.none),
  slope: ({ ratio, logprob, behaviourLogprob, advantage, isSelected }, { coefficient }) => {
    const distance = logprob - behaviourLogprob;
    const held = isSelected && Math.abs(distance) <= MAX_LOG_RATIO ? coefficient * Math.sign(distance) : 0;
    return held - advantage * ratioSlope(ratio);
  },
  select: (tokens, { share }) => {
    const covariance = covariances(tokens);
    // Equal ones by their place, so that the choice is one of the minibatch alone.
    const order = [...covariance.keys()].sort((a, b) => covariance[b]! - covariance[a]! || a - b);
    const chosen = new Set(order.slice(0, countOf(share, covariance.length)));
    return covariance.map((_, token) => chosen.has(token));
  },
});
