/** The graph of ppo_clip; its formula and papers are in libs/rl/src/algorithm/loss/token/ppo-clip.ts. */

import { LessOrEqual, Max, Mul, Neg, Where } from "@hone/tensor";
import type { LossGraph } from "../loss-graph.ts";
import { ratioOf } from "../ratio.ts";
import { clippedSurrogate } from "../surrogate.ts";

export const ppoClip: LossGraph<"ppo_clip"> = (inputs, constants) => {
  const { advantage } = inputs;
  const { dualClip } = constants;
  const surrogate = clippedSurrogate(ratioOf(inputs, constants), advantage, constants);
  if (dualClip === undefined) return Neg(surrogate);
  const bounded = Max(surrogate, Mul(advantage, dualClip));
  return Neg(Where(LessOrEqual(advantage, 0), bounded, surrogate));
};
