/**
 * A penalty of answers that come close to a limit (soft overlong punishment, DAPO, Yu et al., 2025,
 * https://arxiv.org/abs/2503.14476, equation 13). With n sampled tokens:
 *
 *   n <= limit - buffer                0
 *   beyond that                        -factor (n - (limit - buffer)) / buffer
 *   from the limit on                  -factor
 */

import { z } from "zod";

/** The option `reward.overlong`. */
export const overlongSchema = z.strictObject({
  /** Sampled tokens of a rollout from which the penalty is whole. verl: max_resp_len. */
  limit: z.number().int().min(1),
  /** Over how many tokens before the limit it grows. verl: overlong_buffer.len. */
  buffer: z.number().int().min(1),
  /** The whole penalty. verl: overlong_buffer.penalty_factor. */
  factor: z.number().positive().max(1e3).default(1),
});
export type OverlongOptions = z.output<typeof overlongSchema>;

/** What is added to the reward: 0 or less. @param tokenCount sampled tokens of the rollout. */
export function lengthPenalty(tokenCount: number, { limit, buffer, factor }: OverlongOptions): number {
  const beyond = Math.min(tokenCount, limit) - (limit - buffer);
  return beyond <= 0 ? 0 : (-beyond / buffer) * factor;
}
