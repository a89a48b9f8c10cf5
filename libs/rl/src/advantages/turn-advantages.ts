/**
 * Advantages of single turns, from rewards that were given to turns.
 *
 *   G_it = sum over k >= t of gamma^(k-t) * r_ik
 *   A_it = episodeWeight * A_i + weight * B_it
 *
 * A_i is the rollout's advantage by its episode's reward, B_it the same algorithm's over the returns G_jt of all rollouts j
 * of the group that came to turn t: like is compared with like. So are the step advantages of GiGPO (Feng et al., 2025) and
 * ROLL, with the turn's index in the place of their state's hash. A turn that one rollout alone came to has B_it = 0.
 */

import { type AdvantageConfig, advantagesOf } from "./registry.ts";

/** How rewards of turns count. */
export interface TurnRewardConfig {
  /** Of the turns' part of an advantage. ROLL: step_reward_weight. */
  readonly weight: number;
  /** Of the episode's part. ROLL: episode_reward_weight. */
  readonly episodeWeight: number;
  /** By how much a reward counts less with each turn that lies before it. ROLL: step_reward_gamma. */
  readonly gamma: number;
}

/** One rollout of a group. */
export interface TurnedRollout {
  /** By the episode's reward. */
  readonly advantage: number;
  /** Reward of each turn, in their order; undefined = the rollout's turns are not compared. */
  readonly turnRewards: readonly number[] | undefined;
  readonly turnCount: number;
}

/** @returns for each rollout of the group the advantage of each of its turns. */
export function turnAdvantagesOf(
  group: readonly TurnedRollout[],
  rules: TurnRewardConfig,
  config: AdvantageConfig,
): number[][] {
  const returns = group.map(({ turnRewards }) =>
    turnRewards === undefined ? [] : returnsOf(turnRewards, rules.gamma),
  );
  const advantages = group.map(({ advantage, turnCount }) =>
    Array.from({ length: turnCount }, () => rules.episodeWeight * advantage + 0),
  );
  const mostTurns = Math.max(0, ...returns.map(({ length }) => length));
  for (let turn = 0; turn < mostTurns; turn++) {
    const present = returns.flatMap((each, index) => (turn < each.length ? [index] : []));
    const compared = advantagesOf(
      present.map((index) => returns[index]![turn]!),
      config,
    );
    present.forEach((index, i) => {
      // + 0: a ledger that keeps numbers as text knows no -0.
      advantages[index]![turn] = advantages[index]![turn]! + rules.weight * compared[i]! + 0;
    });
  }
  return advantages;
}

/** Discounted sums of what comes from each turn on. */
function returnsOf(rewards: readonly number[], gamma: number): number[] {
  const returns = new Array<number>(rewards.length);
  let sum = 0;
  for (let turn = rewards.length - 1; turn >= 0; turn--) {
    sum = rewards[turn]! + gamma * sum;
    returns[turn] = sum;
  }
  return returns;
}
