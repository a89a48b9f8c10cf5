/**
 * Geometric-mean policy optimization (https://arxiv.org/abs/2507.20673): the surrogate of a sample is the geometric mean of
 * its tokens' clipped ratios. With d = log pi(token) - log behaviour(token), and means over the sample:
 *
 *   d' = min(d, high)  where A > 0,     max(d, -low)  where A < 0,     0  where A = 0
 *   l = -e^(mean of d') (mean of A), the same for all tokens of the sample
 */

import { z } from "zod";
import { meanOf, sumOf } from "../../statistics.ts";
import { Aggregation } from "../aggregation.ts";
import { definePolicyLoss, type TokenFigures } from "../loss.ts";
import { ratioSlope } from "../ratio.ts";
import { TokenCut } from "../token-cut.ts";

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
  cut,
  // Each token's loss is that of the sample, so the gradient of a token comes from all of them (slopesOfGroup).
  slope: () => Number.NaN,
  slopesOfGroup: (tokens, weights, constants) => {
    const distances = tokens.map((token) => {
      const distance = token.logprob - token.behaviourLogprob;
      if (token.advantage === 0) return 0;
      return token.advantage > 0
        ? Math.min(distance, constants.clipHigh)
        : Math.max(distance, -constants.clipLow);
    });
    const ratio = ratioSlope(Math.exp(meanOf(distances)));
    const common =
      (-sumOf(weights) * ratio * meanOf(tokens.map(({ advantage }) => advantage))) / tokens.length;
    return tokens.map((token) =>
      token.advantage === 0 || cut(token, constants) !== TokenCut.none ? 0 : common,
    );
  },
});

function cut(
  { logprob, behaviourLogprob, advantage }: TokenFigures,
  { clipLow, clipHigh }: { clipLow: number; clipHigh: number },
): TokenCut {
  const distance = logprob - behaviourLogprob;
  if (advantage > 0 && distance > clipHigh) return TokenCut.clipHigh;
  return advantage < 0 && distance < -clipLow ? TokenCut.clipLow : TokenCut.none;
}
