/** The graph of gspo; its formula and paper are in libs/rl/src/algorithm/loss/sequence/gspo.ts. */

import { MAX_SEQUENCE_LOG_RATIO } from "@hone/rl";
import { Add, Exp, Min, Neg, StopGradient, Sub } from "@hone/tensor";
import type { LossGraph } from "../loss-graph.ts";
import { groupMean } from "../ratio.ts";
import { clippedSurrogate } from "../surrogate.ts";

export const gspo: LossGraph<"gspo"> = ({ logprob, behaviourLogprob, advantage, sequence }, constants) => {
  const mean = StopGradient(groupMean(Sub(logprob, behaviourLogprob), sequence));
  const ofToken = Sub(logprob, StopGradient(logprob));
  return Neg(clippedSurrogate(Exp(Min(Add(mean, ofToken), MAX_SEQUENCE_LOG_RATIO)), advantage, constants));
};
