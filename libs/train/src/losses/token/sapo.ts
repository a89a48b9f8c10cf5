/** The graph of sapo; its formula and paper are in libs/rl/src/algorithm/loss/token/sapo.ts. */

import { Greater, Mul, Neg, Sigmoid, Sub, Where } from "@hone/tensor";
import type { LossGraph } from "../loss-graph.ts";
import { ratioOf } from "../ratio.ts";

export const sapo: LossGraph<"sapo"> = (inputs, { tauPositive, tauNegative }) => {
  const { advantage } = inputs;
  const distance = Sub(ratioOf(inputs, {}), 1);
  const gate = (tau: number) => Mul(Sigmoid(Mul(distance, tau)), 4 / tau);
  return Neg(Mul(Where(Greater(advantage, 0), gate(tauPositive), gate(tauNegative)), advantage));
};
