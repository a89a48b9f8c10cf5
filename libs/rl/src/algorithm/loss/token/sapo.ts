/**
 * Soft adaptive policy optimization (https://arxiv.org/abs/2511.20347): a soft gate in place of the clip. With
 * r = pi(token) / behaviour(token), the sigmoid s, and tau by the sign of A:
 *
 *   l = -(4 / tau) s(tau (r - 1)) A
 *
 * At r = 1 the gradient is that of PPO, and it fades as r moves away; a larger tau makes it fade sooner.
 */

import { z } from "zod";
import { Aggregation } from "../aggregation.ts";
import { definePolicyLoss } from "../loss.ts";
import { boundedRatio, ratioSlope } from "../ratio.ts";

export const sapo = definePolicyLoss({
  name: "sapo",
  options: {
    /** tau where the advantage is above 0. */
    tauPositive: z.number().gt(0).default(1),
    /** tau elsewhere. */
    tauNegative: z.number().gt(0).default(1.05),
  },
  aggregate: Aggregation.seqMeanTokenMean,
  reads: ["behaviourLogprob", "advantage"],
  constants: z.strictObject({ tauPositive: z.number().positive(), tauNegative: z.number().positive() }),
  constantsOf: ({ tauPositive, tauNegative }) => ({ tauPositive, tauNegative }),
  slope: ({ ratio, advantage }, { tauPositive, tauNegative }) => {
    const tau = advantage > 0 ? tauPositive : tauNegative;
    const gate = 1 / (1 + Math.exp(-tau * (boundedRatio(ratio) - 1)));
    return -4 * gate * (1 - gate) * ratioSlope(ratio) * advantage;
  },
});
