/**
 * Divergence PPO with the total variation (dppo.ts): with p = pi(token) and b = behaviour(token), D = |p - b|.
 */

import { definePolicyLoss } from "../loss.ts";
import { dppoConstants, dppoCut, dppoOptions, dppoSlope } from "./dppo.ts";

export const dppoTv = definePolicyLoss({
  name: "dppo_tv",
  options: dppoOptions(0.15),
  reads: ["behaviourLogprob", "advantage"],
  constants: dppoConstants,
  constantsOf: ({ thresholdLow, thresholdHigh, maxRatio }) => ({ thresholdLow, thresholdHigh, maxRatio }),
  cut: (token, constants) => dppoCut(token, constants, totalVariation),
  slope: (token, constants) => dppoSlope(token, constants, totalVariation),
});

function totalVariation(p: number, b: number): number {
  return Math.abs(p - b);
}
