/** The graph of ppo_clip; its formula and papers are in libs/rl/src/algorithm/loss/ppo-clip.ts. */

import { MAX_LOG_RATIO } from "@hone/rl";
import { Clip, Exp, LessOrEqual, Max, Min, Mul, Neg, Sub, Where } from "@hone/tensor";
import type { LossGraph } from "./loss-graph.ts";

export const ppoClip: LossGraph<"ppo_clip"> = (
  { logprob, behaviourLogprob, advantage },
  { clipLow, clipHigh, dualClip },
) => {
  const logRatio = Clip(Sub(logprob, behaviourLogprob), -MAX_LOG_RATIO, MAX_LOG_RATIO);
  const ratio = Exp(logRatio);
  const clipped = Clip(ratio, 1 - clipLow, 1 + clipHigh);
  const surrogate = Min(Mul(ratio, advantage), Mul(clipped, advantage));
  if (dualClip === undefined) return Neg(surrogate);
  const bounded = Max(surrogate, Mul(advantage, dualClip));
  return Neg(Where(LessOrEqual(advantage, 0), bounded, surrogate));
};
