/**
 * Cross-entropy of the tokens that are imitated, for a warm start: l = -log pi(token).
 */

import { z } from "zod";
import { defineTokenLoss } from "./loss.ts";

export const crossEntropy = defineTokenLoss({
  name: "cross_entropy",
  reads: [],
  constants: z.strictObject({}),
  slope: () => -1,
});
