/**
 * Online mirror descent of Kimi k1.5 (https://arxiv.org/abs/2501.12599, equation 3), with the log ratio
 * d = log pi(token) - log behaviour(token):
 *
 *   l = -A log pi(token) + (tau / 2) d^2
 *
 * The formula is that of dro.ts; the two come from different systems, with names of their own.
 */

import { z } from "zod";
import { definePolicyLoss } from "../loss.ts";

export const kimi15 = definePolicyLoss({
  name: "kimi15",
  options: {
    /** Weight of the square. */
    tau: z.number().gt(0).default(0.1),
  },
  trainsWithoutAdvantage: true,
  reads: ["behaviourLogprob", "advantage"],
  constants: z.strictObject({ tau: z.number().positive() }),
  constantsOf: ({ tau }) => ({ tau }),
  slope: ({ advantage, logprob, behaviourLogprob }, { tau }) =>
    -advantage + tau * (logprob - behaviourLogprob),
});
