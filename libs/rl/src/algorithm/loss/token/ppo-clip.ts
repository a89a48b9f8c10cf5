/**
 * The clipped surrogate of PPO.
 *
 * With r = pi(token) / behaviour(token) and A the advantage (PPO, https://arxiv.org/abs/1707.06347, with the two
 * bounds apart as in DAPO, https://arxiv.org/abs/2503.14476):
 *
 *   l = -min(r A, clip(r, 1 - low, 1 + high) A)
 *
 * With the dual clip c (https://arxiv.org/abs/1912.09729), for A < 0: l = -max(min(...), c A). The ratio can also be that
 * of a turn (ratio.ts).
 */

import { z } from "zod";
import { sumOf } from "../../statistics.ts";
import { definePolicyLoss, type TokenFigures } from "../loss.ts";
import {
  ppoCut,
  type RatioConstants,
  ratioConstants,
  ratioGroup,
  ratioOption,
  ratioSchema,
  ratioSlope,
} from "../ratio.ts";
import { TokenCut } from "../token-cut.ts";

export const ppoClip = definePolicyLoss({
  name: "ppo_clip",
  options: {
    /** The ratio counts down to 1 - clipLow. */
    clipLow: z.number().gt(0).lt(1).default(0.2),
    /** The ratio counts up to 1 + clipHigh. */
    clipHigh: z.number().gt(0).default(0.28),
    /** Where the advantage is negative, a ratio above this adds nothing; null = no such bound. */
    dualClip: z.number().gt(1).nullable().default(3),
    ...ratioOption,
  },
  reads: ["behaviourLogprob", "advantage"],
  constants: z.strictObject({
    clipLow: z.number().min(0).max(1),
    clipHigh: z.number().min(0),
    dualClip: z.number().gt(1).optional(),
    ...ratioSchema,
  }) as z.ZodType<{ clipLow: number; clipHigh: number; dualClip?: number } & RatioConstants>,
  groupedBy: ratioGroup,
  constantsOf: ({ clipLow, clipHigh, dualClip, ratio }) => ({
    clipLow,
    clipHigh,
    ...(dualClip !== null && { dualClip }),
    ...ratioConstants(ratio),
  }),
  cut,
  slope: (token, constants) =>
    cut(token, constants) === TokenCut.none ? -token.advantage * ratioSlope(token.ratio) : 0,
  // Only a ratio of turns is taken together, whose gradient reaches all tokens of the turn alike.
  slopesOfGroup: (tokens, weights, constants) => {
    const sum = sumOf(
      tokens.map((token, i) =>
        cut(token, constants) === TokenCut.none
          ? -weights[i]! * token.advantage * ratioSlope(token.groupRatio)
          : 0,
      ),
    );
    return tokens.map(() => sum / tokens.length);
  },
});

function cut(
  { groupRatio, advantage }: TokenFigures,
  { dualClip, ...bounds }: { clipLow: number; clipHigh: number; dualClip?: number },
): TokenCut {
  if (dualClip !== undefined && advantage < 0 && groupRatio > dualClip) return TokenCut.dualClip;
  return ppoCut(groupRatio, advantage, bounds);
}
