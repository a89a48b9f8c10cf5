/** The graph of cispo; its formula and paper are in libs/rl/src/algorithm/loss/token/cispo.ts. */

import { And, Clip, Greater, Less, Where } from "@hone/tensor";
import type { LossGraph } from "../loss-graph.ts";
import { ratioOf } from "../ratio.ts";
import { weightedPolicyGradient } from "./policy-gradient.ts";

export const cispo: LossGraph<"cispo"> = (inputs, constants) => {
  const { clipLow, clipHigh, mask } = constants;
  const { advantage } = inputs;
  const ratio = ratioOf(inputs, constants);
  let weight = Clip(ratio, 1 - clipLow, 1 + clipHigh);
  if (mask !== undefined) {
    weight = Where(And(Greater(advantage, 0), Greater(ratio, 1 + clipHigh)), 0, weight);
    weight = Where(And(Less(advantage, 0), Less(ratio, 1 - clipLow)), 0, weight);
  }
  return weightedPolicyGradient(weight, inputs);
};
