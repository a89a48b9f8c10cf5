/** The graphs of dro and kimi15; formulas and papers are in libs/rl/src/algorithm/loss/token/. */

import { Add, Mul, Sub, type Tensor } from "@hone/tensor";
import type { LossGraph } from "../loss-graph.ts";
import { policyGradient } from "./policy-gradient.ts";

export const dro: LossGraph<"dro"> = (inputs, { beta }) => Add(policyGradient(inputs), square(inputs, beta));
export const kimi15: LossGraph<"kimi15"> = (inputs, { tau }) =>
  Add(policyGradient(inputs), square(inputs, tau));

/** (weight / 2) (log pi - log behaviour)^2 */
function square(
  { logprob, behaviourLogprob }: { readonly logprob: Tensor; readonly behaviourLogprob: Tensor },
  weight: number,
): Tensor {
  const distance = Sub(logprob, behaviourLogprob);
  return Mul(Mul(distance, distance), weight / 2);
}
