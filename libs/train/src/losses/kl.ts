/** The graphs of kl_k1, kl_k2 and kl_k3; their formulas are in libs/rl/src/algorithm/kl/estimators.ts. */

import { MAX_LOG_RATIO } from "@hone/rl";
import { Clip, Exp, Mul, Neg, Sub, type Tensor } from "@hone/tensor";
import type { LossGraph } from "./loss-graph.ts";

/** @param estimate computes the estimate from d, [E], the log-probability under the reference minus that under the policy */
function klGraph(estimate: (d: Tensor) => Tensor): LossGraph<"kl_k1" | "kl_k2" | "kl_k3"> {
  return ({ logprob, referenceLogprob }, { coefficient }) =>
    Mul(estimate(Clip(Sub(referenceLogprob, logprob), -MAX_LOG_RATIO, MAX_LOG_RATIO)), coefficient);
}

export const klK1 = klGraph((d) => Neg(d));
export const klK2 = klGraph((d) => Mul(Mul(d, d), 0.5));
export const klK3 = klGraph((d) => Sub(Sub(Exp(d), d), 1));
