/** The graphs of kl_k1, kl_abs, kl_k2 and kl_k3; their formulas are in libs/rl/src/algorithm/kl/estimators.ts. */

import { MAX_K3 } from "@hone/rl";
import { Abs, Add, Clip, Exp, Mul, Neg, StopGradient, Sub, type Tensor } from "@hone/tensor";
import type { LossGraph } from "./loss-graph.ts";
import { bounded } from "./ratio.ts";

/** @param estimate computes the estimate from d, [E], the log-probability under the reference minus that under the policy */
function klGraph(estimate: (d: Tensor) => Tensor): LossGraph<"kl_k1" | "kl_abs" | "kl_k2" | "kl_k3"> {
  return ({ logprob, referenceLogprob }, { coefficient, straightThrough }) => {
    const d = Sub(referenceLogprob, logprob);
    if (straightThrough === undefined) return Mul(estimate(d), coefficient);
    const guide = halfSquare(d);
    return Mul(Add(StopGradient(Sub(estimate(d), guide)), guide), coefficient);
  };
}

export const klK1 = klGraph((d) => Neg(d));
export const klAbs = klGraph((d) => Abs(d));
export const klK2 = klGraph(halfSquare);
export const klK3 = klGraph((d) => {
  const within = bounded(d);
  return Clip(Sub(Sub(Exp(within), within), 1), -MAX_K3, MAX_K3);
});

function halfSquare(d: Tensor): Tensor {
  return Mul(Mul(d, d), 0.5);
}
