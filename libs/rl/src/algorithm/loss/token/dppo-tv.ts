/**
 * Divergence PPO with the total variation (dppo.ts): with p = pi(token) and b = behaviour(token), D = |p - b|.
 */

import { definePolicyLoss } from "../loss.ts";
import { dppoConstants, dppoOptions, hasMovedTooFar } from "./dppo.ts";

export const dppoTv = definePolicyLoss({
  name: "dppo_tv",
  options: dppoOptions(0.15),
  reads: ["behaviourLogprob", "advantage"],
  constants: dppoConstants,
  constantsOf: ({ thresholdLow, thresholdHigh, maxRatio }) => ({ thresholdLow, thresholdHigh, maxRatio }),
  isClipped: (token, constants) => hasMovedTooFar(token, constants, (p, b) => Math.abs(p - b)),
});
