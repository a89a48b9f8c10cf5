/**
 * Direct reward optimisation (https://arxiv.org/abs/2405.19107): the policy gradient, held near the policy that sampled by
 * the square of the log ratio d = log pi(token) - log behaviour(token):
 *
 *   l = -A log pi(token) + (beta / 2) d^2
 */

import { z } from "zod";
import { definePolicyLoss } from "../loss.ts";

export const dro = definePolicyLoss({
  name: "dro",
  options: {
    /** Weight of the square. */
    beta: z.number().gt(0).default(0.1),
  },
  trainsWithoutAdvantage: true,
  reads: ["behaviourLogprob", "advantage"],
  constants: z.strictObject({ beta: z.number().positive() }),
  constantsOf: ({ beta }) => ({ beta }),
  slope: ({ advantage, logprob, behaviourLogprob }, { beta }) =>
    -advantage + beta * (logprob - behaviourLogprob),
});
