/**
 * Leave one out: each reward is compared with the mean of the others in its group (RLOO, Ahmadian et al., "Back to Basics",
 * 2024, https://arxiv.org/abs/2402.14740).
 *
 *   A_i = r_i - sum of r_j over j != i / (n - 1)
 *
 * A group of one and one of equal rewards have 0.
 */

import { isFlat } from "../../statistics.ts";
import { defineAdvantage } from "../advantage.ts";
import type { Baseline } from "../parts.ts";
import { compareGroup, turnRewardsOption } from "../turn/turn-rewards.ts";

export const rloo = defineAdvantage({
  kind: "rloo",
  options: {
    /** How rewards of single turns count; absent = they change nothing. */
    turnRewards: turnRewardsOption,
  },
  comparesGroup: true,
  turnKey: ({ turnRewards }) => (turnRewards === undefined ? undefined : "turnRewards"),
  compute: (step, { turnRewards }) => ({
    groups: step.map((group) => compareGroup(group, leaveOneOut, meansOfOthers, turnRewards)),
  }),
});

/** @returns one advantage per reward, in their order. */
export function leaveOneOut(rewards: readonly number[]): number[] {
  const baselines = meansOfOthers(rewards);
  return rewards.map((reward, i) => reward - baselines[i]!.mean);
}

/** What each reward is compared with: the mean of the others. */
function meansOfOthers(rewards: readonly number[]): Baseline[] {
  if (isFlat(rewards)) return rewards.map((mean) => ({ mean, scale: 1 }));
  const sum = rewards.reduce((total, reward) => total + reward, 0);
  const others = rewards.length - 1;
  return rewards.map((reward) => ({ mean: (sum - reward) / others, scale: 1 }));
}
