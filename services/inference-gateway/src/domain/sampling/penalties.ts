/**
 * Penalties for tokens that are already in the text, applied to logits before the temperature.
 *
 *   repetition r (https://arxiv.org/abs/1909.05858): of every token in the context, prompt included, a positive logit is
 *       divided by r, and a negative one multiplied
 *   presence and frequency: presence + frequency * count is subtracted from the logit of every sampled token
 */

import type { EngineSampling } from "../inference-engine.ts";

export type Penalties = Pick<EngineSampling, "repetitionPenalty" | "presencePenalty" | "frequencyPenalty">;

/** The text so far. */
export interface TextSoFar {
  /** Prompt, then what was sampled: `tokens[0, length)`. */
  readonly tokenIds: Int32Array;
  readonly promptLength: number;
  readonly length: number;
}

export function hasPenalties({
  repetitionPenalty = 1,
  presencePenalty = 0,
  frequencyPenalty = 0,
}: Penalties) {
  return repetitionPenalty !== 1 || presencePenalty !== 0 || frequencyPenalty !== 0;
}

/** Applies them in place. @param logits one row [V]. */
export function penalize(logits: Float32Array, penalties: Penalties, text: TextSoFar): void {
  const { repetitionPenalty = 1, presencePenalty = 0, frequencyPenalty = 0 } = penalties;
  const { tokenIds, promptLength, length } = text;
  if (repetitionPenalty !== 1) {
    for (const id of new Set(tokenIds.subarray(0, length))) {
      const logit = logits[id]!;
      logits[id] = logit > 0 ? logit / repetitionPenalty : logit * repetitionPenalty;
    }
  }
  const counts = new Map<number, number>();
  for (const id of tokenIds.subarray(promptLength, length)) counts.set(id, (counts.get(id) ?? 0) + 1);
  for (const [id, count] of counts) logits[id]! -= presencePenalty + frequencyPenalty * count;
}
