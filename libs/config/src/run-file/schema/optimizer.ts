/** The keys of an optimizer, which a run's own policy, its critic and its further policies have. */

import { z } from "zod";

export const optimizer = z.strictObject({
  kind: z.literal("adamw"),
  learningRate: z.number().positive().max(1),
  beta1: z.number().min(0).lt(1).default(0.9),
  beta2: z.number().min(0).lt(1).default(0.95),
  epsilon: z.number().positive().default(1e-8),
  /** Decoupled weight decay, applied to matrices only. */
  weightDecay: z.number().min(0).default(0),
  /** Gradients with a larger global norm are scaled down to it. */
  maxGradNorm: z.number().positive().default(1),
  schedule: z
    .strictObject({
      kind: z.enum(["constant", "linear", "cosine"]).default("constant"),
      /** Number of steps over which the learning rate rises from 0. */
      warmupSteps: z.number().int().min(0).default(0),
      /** Learning rate at the last step, as a share of the full rate. */
      finalRatio: z.number().min(0).max(1).default(0),
    })
    .prefault({}),
});
