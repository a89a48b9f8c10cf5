/**
 * KL in the reward: what moves away from the reference policy earns less, token by token (Ziegler et al., "Fine-Tuning
 * Language Models from Human Preferences", 2019, https://arxiv.org/abs/1909.08593).
 *
 *   r_t -> r_t - beta KL_t                                      on sampled tokens
 *   beta -> beta (1 + clip(KL / target - 1, -0.2, 0.2) n / horizon)      after a step of n rollouts
 *
 * KL is the mean over rollouts of the mean over their tokens.
 */

import { clip, meanOf } from "../statistics.ts";

/** Most by which the error of one step changes the coefficient, as a share for n = horizon. */
const MAX_ERROR = 0.2;

/** The mean over rollouts of the mean over their tokens; one without a token counts as 0. @param kl for each rollout [N]. */
export function meanKl(kl: readonly (readonly number[])[]): number {
  return meanOf(kl.map(meanOf));
}

/** A coefficient that is led towards a distance. */
export interface AdaptiveKl {
  /** The distance to keep. */
  readonly target: number;
  /** Rollouts after which a steady error of a fifth has changed the coefficient by a fifth. */
  readonly horizon: number;
}

/** The coefficient of the next step. @param kl mean of this step. @param rolloutCount rollouts of this step. */
export function adaptKlCoefficient(
  coefficient: number,
  kl: number,
  rolloutCount: number,
  { target, horizon }: AdaptiveKl,
): number {
  const error = clip(kl / target - 1, MAX_ERROR);
  return coefficient * (1 + (error * rolloutCount) / horizon);
}
