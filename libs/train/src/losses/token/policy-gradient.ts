/** The policy gradient with a weight, which several losses share. */

import { Mul, Neg, StopGradient, type Tensor } from "@hone/tensor";

interface Inputs {
  readonly logprob: Tensor;
  readonly advantage: Tensor;
}

/** -A log pi for every entry. */
export function policyGradient({ logprob, advantage }: Inputs): Tensor {
  return Neg(Mul(logprob, advantage));
}

/** -sg(weight) A log pi for every entry, sg = without a gradient. */
export function weightedPolicyGradient(weight: Tensor, inputs: Inputs): Tensor {
  return Mul(StopGradient(weight), policyGradient(inputs));
}
