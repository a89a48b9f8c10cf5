/**
 * Group sequence policy optimization (https://arxiv.org/abs/2507.18071): the clipped surrogate with one ratio for a whole
 * sample, which is the geometric mean of those of its tokens. With m the mean of log pi - log behaviour over the sample, and
 * sg = without a gradient (GSPO-token, equation 14, so that advantages may differ within a sample):
 *
 *   s_t = e^(sg(m) + log pi(token) - sg(log pi(token)))
 *   l = -min(s A, clip(s, 1 - low, 1 + high) A)
 *
 * A sample's log ratio counts up to 10, as in verl.
 */

import { z } from "zod";
import { Aggregation } from "../aggregation.ts";
import { definePolicyLoss, type TokenFigures } from "../loss.ts";
import { ppoCut } from "../ratio.ts";
import { TokenCut } from "../token-cut.ts";

/** Largest log ratio of a sample. e^10 is far outside every clip range, where only a negative advantage leads. */
export const MAX_SEQUENCE_LOG_RATIO = 10;
const LARGEST_RATIO = Math.exp(MAX_SEQUENCE_LOG_RATIO);

export const gspo = definePolicyLoss({
  name: "gspo",
  options: {
    /** The ratio counts down to 1 - clipLow. */
    clipLow: z.number().gt(0).lt(1).default(3e-4),
    /** The ratio counts up to 1 + clipHigh. */
    clipHigh: z.number().gt(0).default(4e-4),
  },
  aggregate: Aggregation.seqMeanTokenMean,
  reads: ["behaviourLogprob", "advantage", "sequence"],
  groupedBy: () => "sequence",
  constants: z.strictObject({ clipLow: z.number().min(0).max(1), clipHigh: z.number().min(0) }),
  constantsOf: ({ clipLow, clipHigh }) => ({ clipLow, clipHigh }),
  cut,
  slope: (token, constants) =>
    cut(token, constants) === TokenCut.none ? -token.advantage * token.groupRatio : 0,
});

function cut(
  { groupRatio, advantage }: TokenFigures,
  bounds: { clipLow: number; clipHigh: number },
): TokenCut {
  const found = ppoCut(groupRatio, advantage, bounds);
  return found === TokenCut.none && groupRatio > LARGEST_RATIO ? TokenCut.bound : found;
}
