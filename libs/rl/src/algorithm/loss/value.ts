/**
 * The loss of a critic: the squared distance of its value from the return, which is PPO's with the clip that keeps values
 * near what they were before the step (https://arxiv.org/abs/1707.06347 and its reference code; verl's cliprange_value,
 * ROLL's value_clip).
 *
 *   l = 1/2 max((V - R)^2, (clip(V, V_old - c, V_old + c) - R)^2)        without a clip l = 1/2 (V - R)^2
 */

import { z } from "zod";
import { Aggregation } from "./aggregation.ts";
import { defineTokenLoss, type LossTerm } from "./loss.ts";

export const valueLoss = defineTokenLoss({
  name: "value",
  reads: ["oldValue", "return"],
  constants: z.strictObject({ clip: z.number().positive().optional() }) as z.ZodType<{ clip?: number }>,
});

/** `trainer.critic.loss` of a run file. */
export const valueLossSchema = z
  .strictObject({
    /** How far a value may move within a step before it learns nothing more; null = no such bound. */
    clip: z.number().positive().nullable().default(0.5),
    /** How token losses become one number. */
    aggregate: z.enum(Aggregation).default(Aggregation.tokenMean),
  })
  .prefault({});

/** The options of a critic's loss. */
export type ValueLossConfig = z.output<typeof valueLossSchema>;

/** The loss of a critic as engines take it. */
export function valueTerm({ clip }: Pick<ValueLossConfig, "clip">): LossTerm<"value"> {
  return { name: valueLoss.name, constants: clip === null ? {} : { clip } };
}

/** A trained token of a critic when an update begins. */
export interface ValueFigures {
  readonly value: number;
  readonly oldValue: number;
  readonly return: number;
}

/** Whether the clip holds the gradient of a token back. */
export function isValueClipped(
  { value, oldValue, return: target }: ValueFigures,
  { clip }: Pick<ValueLossConfig, "clip">,
): boolean {
  if (clip === null) return false;
  const clipped = Math.min(oldValue + clip, Math.max(oldValue - clip, value));
  return (clipped - target) ** 2 > (value - target) ** 2;
}
