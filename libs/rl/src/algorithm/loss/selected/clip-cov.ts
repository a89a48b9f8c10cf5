/**
 * PPO that leaves out a few tokens of high covariance (Clip-Cov, https://arxiv.org/abs/2505.22617, equation 12). With
 * r = pi(token) / behaviour(token), and a share of the minibatch's tokens chosen among those that PPO does not clip and whose
 * covariance (covariance.ts) lies between the bounds:
 *
 *   l = 0                                              where the token is chosen
 *   l = -min(r A, clip(r, 1 - low, 1 + high) A)        elsewhere
 *
 * More tokens than the share are drawn from by a fixed seed, so that the same minibatch gives the same choice.
 */

import { Random } from "@hone/core";
import { z } from "zod";
import { definePolicyLoss } from "../loss.ts";
import { isPpoClipped, ppoCut, ratioSlope } from "../ratio.ts";
import { TokenCut } from "../token-cut.ts";
import { countOf, covariances } from "./covariance.ts";

export const clipCov = definePolicyLoss({
  name: "clip_cov",
  options: {
    /** The ratio counts down to 1 - clipLow. */
    clipLow: z.number().gt(0).lt(1).default(0.2),
    /** The ratio counts up to 1 + clipHigh. */
    clipHigh: z.number().gt(0).default(0.2),
    /** Share of the minibatch's tokens that are left out at most; at least one is. */
    share: z.number().gt(0).max(1).default(2e-4),
    /** Only tokens whose covariance is above this are left out. */
    covarianceLow: z.number().default(1),
    /** Only tokens whose covariance is below this are left out. */
    covarianceHigh: z.number().default(5),
  },
  trainsWithoutAdvantage: true,
  reads: ["behaviourLogprob", "advantage", "selected"],
  constants: z.strictObject({
    clipLow: z.number().min(0).max(1),
    clipHigh: z.number().min(0),
    share: z.number().positive().max(1),
    covarianceLow: z.number(),
    covarianceHigh: z.number(),
  }),
  constantsOf: ({ clipLow, clipHigh, share, covarianceLow, covarianceHigh }) => ({
    clipLow,
    clipHigh,
    share,
    covarianceLow,
    covarianceHigh,
  }),
  cut: ({ ratio, advantage, isSelected }, constants) =>
    isSelected ? TokenCut.selected : ppoCut(ratio, advantage, constants),
  slope: ({ ratio, advantage, isSelected }, constants) =>
    isSelected || isPpoClipped(ratio, advantage, constants) ? 0 : -advantage * ratioSlope(ratio),
  select: (tokens, constants) => {
    const covariance = covariances(tokens);
    const candidates = covariance.flatMap((value, token) => {
      const ratio = Math.exp(tokens.logprobs[token]! - tokens.behaviourLogprobs[token]!);
      const isInside = value > constants.covarianceLow && value < constants.covarianceHigh;
      return isInside && !isPpoClipped(ratio, tokens.advantages[token]!, constants) ? [token] : [];
    });
    const chosen = new Set(draw(candidates, countOf(constants.share, covariance.length)));
    return covariance.map((_, token) => chosen.has(token));
  },
});

/** Up to `count` of the candidates. */
function draw(candidates: readonly number[], count: number): readonly number[] {
  const left = [...candidates];
  const random = new Random(candidates.length);
  const drawn: number[] = [];
  while (drawn.length < count && left.length > 0) {
    const at = random.nextInt(left.length);
    drawn.push(left[at]!);
    left[at] = left.at(-1)!;
    left.pop();
  }
  return drawn;
}
