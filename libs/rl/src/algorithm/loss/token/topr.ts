/**
 * Tapered off-policy REINFORCE (https://arxiv.org/abs/2503.14286): what succeeded is imitated, what failed is unlearnt only as
 * far as the policy would still write it. With R the rollout's reward, r = pi(token) / behaviour(token), and sg = without a
 * gradient:
 *
 *   l = -positiveWeight A log pi(token)                       where R > 0
 *   l = -negativeWeight sg(clip(r, 0, 1)) A log pi(token)     elsewhere
 *
 * The ratio can also be that of a turn (ratio.ts).
 */

import { z } from "zod";
import { definePolicyLoss } from "../loss.ts";
import {
  boundCut,
  boundedRatio,
  type RatioConstants,
  ratioConstants,
  ratioGroup,
  ratioOption,
  ratioSchema,
} from "../ratio.ts";
import { TokenCut } from "../token-cut.ts";

export const topr = definePolicyLoss({
  name: "topr",
  options: {
    /** Weight of rollouts whose reward is above 0. */
    positiveWeight: z.number().min(0).default(1),
    /** Weight of the others. */
    negativeWeight: z.number().min(0).default(1),
    ...ratioOption,
  },
  reads: ["behaviourLogprob", "advantage", "reward"],
  constants: z.strictObject({
    positiveWeight: z.number().min(0),
    negativeWeight: z.number().min(0),
    ...ratioSchema,
  }) as z.ZodType<{ positiveWeight: number; negativeWeight: number } & RatioConstants>,
  groupedBy: ratioGroup,
  constantsOf: ({ positiveWeight, negativeWeight, ratio }) => ({
    positiveWeight,
    negativeWeight,
    ...ratioConstants(ratio),
  }),
  cut: ({ groupRatio, reward }) => (reward <= 0 ? boundCut(groupRatio, 0, 1) : TokenCut.none),
  slope: ({ groupRatio, advantage, reward }, { positiveWeight, negativeWeight }) =>
    -advantage * (reward > 0 ? positiveWeight : negativeWeight * Math.min(1, boundedRatio(groupRatio))),
});
