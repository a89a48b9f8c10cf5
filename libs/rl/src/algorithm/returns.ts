/**
 * Returns: what follows an action, each reward counting less by the factor gamma with every place it lies ahead.
 *
 *   G_t = r_t + gamma G_(t+1)
 *
 * Places are sampled tokens, or turns. Tokens that the model did not sample are no places: they neither earn a reward nor
 * make a later one count less.
 */

import { varianceOf } from "./statistics.ts";

/** @returns [N] the return of each place. */
export function discountedReturns(rewards: ArrayLike<number>, gamma: number): number[] {
  const returns = new Array<number>(rewards.length);
  let sum = 0;
  for (let place = rewards.length - 1; place >= 0; place--) {
    sum = rewards[place]! + gamma * sum;
    returns[place] = sum;
  }
  return returns;
}

/** Advantages with the returns that a critic learns from. */
export interface GeneralizedAdvantages {
  /** [N] */
  readonly advantages: readonly number[];
  /** [N] advantage + value. */
  readonly returns: readonly number[];
}

/**
 * Generalized advantage estimation, Schulman et al., 2015 (https://arxiv.org/abs/1506.02438):
 *
 *   d_t = r_t + gamma V_(t+1) - V_t        V = 0 after the last place
 *   A_t = d_t + gamma lambda A_(t+1)
 *
 * @param rewards [N]
 * @param values [N] what the critic expected at each place.
 */
export function generalizedAdvantages(
  rewards: ArrayLike<number>,
  values: ArrayLike<number>,
  { gamma, lambda }: { readonly gamma: number; readonly lambda: number },
): GeneralizedAdvantages {
  const count = rewards.length;
  const advantages = new Array<number>(count);
  const returns = new Array<number>(count);
  let next = 0;
  let nextValue = 0;
  for (let place = count - 1; place >= 0; place--) {
    const value = values[place]!;
    next = rewards[place]! + gamma * nextValue - value + gamma * lambda * next;
    advantages[place] = next;
    returns[place] = next + value;
    nextValue = value;
  }
  return { advantages, returns };
}

/**
 * How much of the spread of returns a critic's values explain: 1 - Var(R - V) / Var(R). 1 = all of it, 0 = no more than their
 * mean does, below 0 = less than that. 0 where all returns are equal, as there is nothing to explain.
 */
export function explainedVariance(values: ArrayLike<number>, returns: ArrayLike<number>): number {
  const ofReturns = varianceOf(Array.from(returns));
  if (ofReturns === 0) return 0;
  return 1 - varianceOf(Array.from(returns, (value, place) => value - values[place]!)) / ofReturns;
}
