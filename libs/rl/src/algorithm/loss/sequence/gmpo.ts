/**
 * Geometric-mean policy optimization (https://arxiv.org/abs/2507.20673): the surrogate of a sample is the geometric mean of
 * its tokens' clipped ratios. With d = log pi(token) - log behaviour(token), and means over the sample:
 *
 *   d' = min(d, high)  where A > 0,     max(d, -low)  where A < 0,     0  where A = 0
 *   l = -e^(mean of d') (mean of A), the same for all tokens of the sample
 */

import { z } from "zod";
import { Aggregation } from "../aggregation.ts";
import { definePolicyLoss } from "../loss.ts";

export const gmpo = definePolicyLoss({
  name: "gmpo",
  options: {
    /** Where the advantage is negative, the log ratio of a token counts down to -clipLow. */
    clipLow: z.number().gt(0).default(0.4),
    /** Where the advantage is positive, the log ratio of a token counts up to clipHigh. */
    clipHigh: z.number().gt(0).default(0.4),
  },
  aggregate: Aggregation.seqMeanTokenMean,
  reads: ["behaviourLogprob", "advantage", "sequence"],
  groupedBy: () => "sequence",
  constants: z.strictObject({ clipLow: z.number().min(0), clipHigh: z.number().min(0) }),
  constantsOf: ({ clipLow, clipHigh }) => ({ clipLow, clipHigh }),
  isClipped: ({ ratio, advantage }, { clipLow, clipHigh }) =>
    advantage > 0 ? Math.log(ratio) > clipHigh : advantage < 0 && Math.log(ratio) < -clipLow,
});
