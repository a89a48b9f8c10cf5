/**
 * Truncated importance sampling (Ionides, "Truncated Importance Sampling", 2008). With r = pi(token) / behaviour(token), and
 * sg = without a gradient:
 *
 *   l = -sg(clip(r, lower, upper)) A log pi(token)
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

export const tis = definePolicyLoss({
  name: "tis",
  options: {
    /** The weight is at least this. */
    lower: z.number().min(0).max(1).default(0),
    /** The weight is at most this. */
    upper: z.number().min(1).default(1),
    ...ratioOption,
  },
  reads: ["behaviourLogprob", "advantage"],
  constants: z.strictObject({
    lower: z.number().min(0),
    upper: z.number().min(0),
    ...ratioSchema,
  }) as z.ZodType<{ lower: number; upper: number } & RatioConstants>,
  groupedBy: ratioGroup,
  constantsOf: ({ lower, upper, ratio }) => ({ lower, upper, ...ratioConstants(ratio) }),
  cut: ({ groupRatio }, { lower, upper }) => boundCut(groupRatio, lower, upper),
  slope: ({ groupRatio, advantage }, { lower, upper }) =>
    -advantage * Math.min(upper, Math.max(lower, boundedRatio(groupRatio))),
});
