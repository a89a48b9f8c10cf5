/** The graph of gmpo; its formula and paper are in libs/rl/src/algorithm/loss/sequence/gmpo.ts. */

import { Exp, Greater, Less, Max, Min, Mul, Neg, Sub, Where } from "@hone/tensor";
import type { LossGraph } from "../loss-graph.ts";
import { bounded, groupMean } from "../ratio.ts";

export const gmpo: LossGraph<"gmpo"> = (
  { logprob, behaviourLogprob, advantage, sequence },
  { clipLow, clipHigh },
) => {
  const distance = Sub(logprob, behaviourLogprob);
  const whereNegative = Where(Less(advantage, 0), Max(distance, -clipLow), 0);
  const clipped = Where(Greater(advantage, 0), Min(distance, clipHigh), whereNegative);
  const ratio = Exp(bounded(groupMean(clipped, sequence)));
  return Neg(Mul(ratio, groupMean(advantage, sequence)));
};
