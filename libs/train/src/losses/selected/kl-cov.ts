/** The graph of kl_cov; its formula and paper are in libs/rl/src/algorithm/loss/selected/kl-cov.ts. */

import { Abs, Exp, Mul, Sub } from "@hone/tensor";
import type { LossGraph } from "../loss-graph.ts";
import { boundedLogRatio } from "../ratio.ts";

export const klCov: LossGraph<"kl_cov"> = (
  { logprob, behaviourLogprob, advantage, selected },
  { coefficient },
) => {
  const logRatio = boundedLogRatio(logprob, behaviourLogprob);
  const held = Mul(Mul(Abs(logRatio), selected), coefficient);
  return Sub(held, Mul(Exp(logRatio), advantage));
};
