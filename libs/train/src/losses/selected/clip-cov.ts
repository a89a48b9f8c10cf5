/** The graph of clip_cov; its formula and paper are in libs/rl/src/algorithm/loss/selected/clip-cov.ts. */

import { Greater, Neg, Where } from "@hone/tensor";
import type { LossGraph } from "../loss-graph.ts";
import { ratioOf } from "../ratio.ts";
import { clippedSurrogate } from "../surrogate.ts";

export const clipCov: LossGraph<"clip_cov"> = (inputs, constants) => {
  const surrogate = clippedSurrogate(ratioOf(inputs, {}), inputs.advantage, constants);
  return Neg(Where(Greater(inputs.selected, 0), 0, surrogate));
};
