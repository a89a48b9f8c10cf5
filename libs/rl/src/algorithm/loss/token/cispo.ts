/**
 * Clipped importance-sampling weights (MiniMax-M1, https://arxiv.org/abs/2506.13585): every token keeps its gradient, with a
 * bounded weight. With r = pi(token) / behaviour(token), and sg = without a gradient:
 *
 *   l = -sg(clip(r, 1 - low, 1 + high)) A log pi(token)
 *
 * With `mask`, tokens that PPO would clip are left out: A > 0 with r > 1 + high, and A < 0 with r < 1 - low. The ratio can
 * also be that of a turn (ratio.ts).
 */

import { z } from "zod";
import { definePolicyLoss } from "../loss.ts";
import {
  boundCut,
  boundedRatio,
  isPpoClipped,
  type RatioConstants,
  ratioConstants,
  ratioGroup,
  ratioOption,
  ratioSchema,
} from "../ratio.ts";
import { TokenCut } from "../token-cut.ts";

export const cispo = definePolicyLoss({
  name: "cispo",
  options: {
    /** The weight is at least 1 - clipLow; from 1 on there is no lower bound. */
    clipLow: z.number().gt(0).default(1),
    /** The weight is at most 1 + clipHigh. */
    clipHigh: z.number().gt(0).default(0.2),
    /** Whether tokens that PPO would clip are left out. */
    mask: z.boolean().default(false),
    ...ratioOption,
  },
  reads: ["behaviourLogprob", "advantage"],
  constants: z.strictObject({
    clipLow: z.number().min(0),
    clipHigh: z.number().min(0),
    mask: z.literal(1).optional(),
    ...ratioSchema,
  }) as z.ZodType<{ clipLow: number; clipHigh: number; mask?: number } & RatioConstants>,
  groupedBy: ratioGroup,
  constantsOf: ({ clipLow, clipHigh, mask, ratio }) => ({
    clipLow,
    clipHigh,
    ...(mask && { mask: 1 }),
    ...ratioConstants(ratio),
  }),
  cut: ({ groupRatio, advantage }, constants) => {
    if (constants.mask !== undefined && isPpoClipped(groupRatio, advantage, constants)) return TokenCut.mask;
    return boundCut(groupRatio, 1 - constants.clipLow, 1 + constants.clipHigh);
  },
  slope: ({ groupRatio, advantage }, constants) => {
    const { clipLow, clipHigh, mask } = constants;
    if (mask !== undefined && isPpoClipped(groupRatio, advantage, constants)) return 0;
    return -advantage * Math.min(1 + clipHigh, Math.max(1 - clipLow, boundedRatio(groupRatio)));
  },
});
