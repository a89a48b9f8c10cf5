/**
 * Divergence PPO with the KL divergence (dppo.ts): with p = pi(token), b = behaviour(token) and e = 1e-8,
 *
 *   D = b log(b / p) + (1 - b) log((1 - b + e) / (1 - p + e))
 */

import { definePolicyLoss } from "../loss.ts";
import { dppoConstants, dppoCut, dppoOptions, dppoSlope } from "./dppo.ts";

/** Keeps the logarithm finite where a probability is 1. */
export const KL_EPSILON = 1e-8;

export const dppoKl = definePolicyLoss({
  name: "dppo_kl",
  options: dppoOptions(0.05),
  reads: ["behaviourLogprob", "advantage"],
  constants: dppoConstants,
  constantsOf: ({ thresholdLow, thresholdHigh, maxRatio }) => ({ thresholdLow, thresholdHigh, maxRatio }),
  cut: (token, constants) => dppoCut(token, constants, binaryKl),
  slope: (token, constants) => dppoSlope(token, constants, binaryKl),
});

function binaryKl(p: number, b: number): number {
  const others = Math.log((1 - b + KL_EPSILON) / (1 - p + KL_EPSILON));
  return b * Math.log(b / p) + (1 - b) * others;
}
