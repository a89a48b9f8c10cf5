/** The graph of topr; its formula and paper are in libs/rl/src/algorithm/loss/token/topr.ts. */

import { Clip, Greater, Mul, Where } from "@hone/tensor";
import type { LossGraph } from "../loss-graph.ts";
import { ratioOf } from "../ratio.ts";
import { weightedPolicyGradient } from "./policy-gradient.ts";

export const topr: LossGraph<"topr"> = (inputs, constants) => {
  const { positiveWeight, negativeWeight } = constants;
  const tapered = Mul(Clip(ratioOf(inputs, constants), 0, 1), negativeWeight);
  return weightedPolicyGradient(Where(Greater(inputs.reward, 0), positiveWeight, tapered), inputs);
};
