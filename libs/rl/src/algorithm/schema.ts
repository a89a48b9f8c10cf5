/** `algorithm` of a run file. */

import { z } from "zod";
import { advantageSchema } from "./advantage/registry.ts";
import { correctionSchema } from "./correction/correction.ts";
import { distillationSchema } from "./distillation/distillation.ts";
import { klSchema } from "./kl/estimators.ts";
import { lossSchema } from "./loss/registry.ts";
import { rewardSchema } from "./reward/schema.ts";
import { dynamicSamplingSchema } from "./sampling/schema.ts";

/** What becomes of a rollout that ended otherwise than completed: keep its reward, give it a fixed one, or leave it out. */
const outcomeRule = z.union([z.enum(["keep", "drop"]), z.strictObject({ reward: z.number() })]);

export type OutcomeRule = z.output<typeof outcomeRule>;

const outcomesSchema = z
  .strictObject({
    truncated: outcomeRule.default("keep"),
    agentFailed: outcomeRule.default({ reward: 0 }),
    timedOut: outcomeRule.default({ reward: 0 }),
  })
  .prefault({});

/** The run's rules, one for each outcome that has a choice. */
export type OutcomeRules = z.output<typeof outcomesSchema>;

export const algorithmSchema = z.strictObject({
  reward: rewardSchema,
  advantage: advantageSchema,
  loss: lossSchema,
  kl: klSchema,
  correction: correctionSchema.optional(),
  dynamicSampling: dynamicSamplingSchema.optional(),
  distillation: distillationSchema.optional(),
  outcomes: outcomesSchema,
});

/** How rewards become gradients. */
export type AlgorithmConfig = z.output<typeof algorithmSchema>;
