/**
 * The policy gradient without a ratio (Williams, "Simple statistical gradient-following algorithms for connectionist
 * reinforcement learning", 1992):
 *
 *   l = -A log pi(token)
 *
 * It takes the tokens as if the weights that are trained had sampled them, so it suits one update for each step.
 */

import { z } from "zod";
import { definePolicyLoss } from "../loss.ts";

export const reinforce = definePolicyLoss({
  name: "reinforce",
  options: {},
  reads: ["advantage"],
  constants: z.strictObject({}),
  constantsOf: () => ({}),
  slope: ({ advantage }) => -advantage,
});
