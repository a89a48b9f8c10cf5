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
import { type RatioConstants, ratioConstants, ratioGroup, ratioOption, ratioSchema } from "../ratio.ts";

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
  isClipped: ({ groupRatio }, { clipLow, clipHigh }) => groupRatio > 1 + clipHigh || groupRatio < 1 - clipLow,
});
