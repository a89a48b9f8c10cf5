/**
 * KL in the reward: what moves away from the reference policy earns less, token by token (Ziegler et al., "Fine-Tuning
 * Language Models from Human Preferences", 2019, https://arxiv.org/abs/1909.08593).
 *
 *   r_t -> r_t - beta KL_t                                      on sampled tokens
 *   beta -> beta (1 + clip(KL / target - 1, -0.2, 0.2) n / horizon)      after a step of n rollouts
 *
 * KL is the mean over rollouts of the mean over their tokens.
 */

import { z } from "zod";
import { estimateKl, KlKind } from "../kl/estimators.ts";
import { clip, meanOf } from "../statistics.ts";

/** The option `reward.kl`. verl: `use_kl_in_reward`. */
export const klRewardSchema = z.strictObject({
  /** beta. verl: kl_ctrl.kl_coef. */
  coefficient: z.number().positive().max(1e3),
  /** How the distance is estimated from the sampled tokens. verl: kl_penalty. */
  kind: z.enum(KlKind).default(KlKind.k1),
  /** Leads the coefficient towards a distance; absent = it stays. verl: kl_ctrl.type adaptive. */
  adaptive: z
    .strictObject({
      /** The distance to keep. verl: target_kl. */
      target: z.number().positive(),
      /** Rollouts after which a steady error of a fifth has changed the coefficient by a fifth. */
      horizon: z.number().int().min(1).default(10_000),
    })
    .optional(),
});
export type KlRewardOptions = z.output<typeof klRewardSchema>;

/**
 * @param logprobs [N] of the sampled tokens, under the policy that sampled them.
 * @param reference [N] under the reference policy.
 * @returns [N] what is added to the reward of each token: -beta KL.
 */
export function klRewards(
  logprobs: ArrayLike<number>,
  reference: ArrayLike<number>,
  { coefficient, kind }: Pick<KlRewardOptions, "coefficient" | "kind">,
): Float64Array {
  // + 0: a ledger that keeps numbers as text knows no -0.
  return Float64Array.from(
    logprobs,
    (logprob, token) => -coefficient * estimateKl(kind, logprob, reference[token]!) + 0,
  );
}

/** Most by which the error of one step changes the coefficient, as a share for n = horizon. */
const MAX_ERROR = 0.2;

/** The mean over rollouts of the mean over their tokens; one without a token counts as 0. @param kl for each rollout [N]. */
export function meanKl(kl: readonly (readonly number[])[]): number {
  return meanOf(kl.map(meanOf));
}

/** The coefficient of the next step. @param kl mean of this step. @param rolloutCount rollouts of this step. */
export function adaptKlCoefficient(
  coefficient: number,
  kl: number,
  rolloutCount: number,
  { target, horizon }: NonNullable<KlRewardOptions["adaptive"]>,
): number {
  const error = clip(kl / target - 1, MAX_ERROR);
  return coefficient * (1 + (error * rolloutCount) / horizon);
}
