/** `algorithm.dynamicSampling` of a run file. */

import { z } from "zod";

export const dynamicSamplingSchema = z.strictObject({
  /** What must differ within a group: its rollouts' rewards, or whether they passed. */
  metric: z.enum(["reward", "success"]).default("reward"),
  /** A step plays at most this many batches of tasks; then it trains the groups that it has. */
  maxBatches: z.number().int().min(1).max(100).default(10),
});

export type DynamicSamplingConfig = z.output<typeof dynamicSamplingSchema>;
