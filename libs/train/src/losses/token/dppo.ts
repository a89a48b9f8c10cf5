/** The graphs of dppo_tv and dppo_kl; formulas and paper are in libs/rl/src/algorithm/loss/token/dppo*.ts. */

import { KL_EPSILON } from "@hone/rl";
import { Abs, Add, And, Div, Exp, Greater, Less, Log, Min, Mul, Sub, type Tensor, Where } from "@hone/tensor";
import type { LossGraph } from "../loss-graph.ts";
import { ratioOf } from "../ratio.ts";
import { weightedPolicyGradient } from "./policy-gradient.ts";

/** @param divergence from the probabilities now and when the token was sampled, and their log-probabilities */
function dppo(
  divergence: (now: Tensor, then: Tensor, logNow: Tensor, logThen: Tensor) => Tensor,
): LossGraph<"dppo_tv" | "dppo_kl"> {
  return (inputs, { thresholdLow, thresholdHigh, maxRatio }) => {
    const { logprob, behaviourLogprob, advantage } = inputs;
    const [now, then] = [Exp(logprob), Exp(behaviourLogprob)];
    const distance = divergence(now, then, logprob, behaviourLogprob);
    const isTooLikely = And(Greater(now, then), Greater(distance, thresholdHigh));
    const isTooUnlikely = And(Less(now, then), Greater(distance, thresholdLow));
    const weight = Min(ratioOf(inputs, {}), maxRatio);
    const whereUp = Where(isTooLikely, 0, weight);
    const whereDown = Where(isTooUnlikely, 0, weight);
    return weightedPolicyGradient(Where(Greater(advantage, 0), whereUp, whereDown), inputs);
  };
}

export const dppoTv = dppo((now, then) => Abs(Sub(now, then)));

export const dppoKl = dppo((now, then, logNow, logThen) => {
  const othersThen = Sub(1, then);
  const others = Log(Div(Add(othersThen, KL_EPSILON), Add(Sub(1, now), KL_EPSILON)));
  return Add(Mul(then, Sub(logThen, logNow)), Mul(othersThen, others));
});
