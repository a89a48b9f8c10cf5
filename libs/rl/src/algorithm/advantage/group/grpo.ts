/**
 * Group-relative advantages.
 *
 *   A_i = (r_i - mean(r)) / (std(r) + eps)      GRPO, Shao et al., "DeepSeekMath", 2024, section 4.1
 *   A_i =  r_i - mean(r)                        without the division: Dr.GRPO, Liu et al., "Understanding
 *                                               R1-Zero-Like Training", 2025
 *
 * std is the sample deviation (divisor n - 1), as in verl and TRL. A group whose rewards are all equal, and a group
 * of one, say nothing about which rollout was better: all their advantages are exactly 0.
 */

import { z } from "zod";
import { defineAdvantage } from "../advantage.ts";
import type { Baseline } from "../parts.ts";
import { compareGroup, turnRewardsOption } from "../turn/turn-rewards.ts";

export const grpo = defineAdvantage({
  kind: "grpo",
  options: {
    /** Divide by the group's standard deviation; false gives Dr.GRPO. */
    normalizeByStd: z.boolean().default(true),
    /** Added to the deviation, so that nearly equal rewards do not explode. */
    epsilon: z.number().positive().default(1e-6),
    /** How rewards of single turns count; absent = they change nothing. */
    turnRewards: turnRewardsOption,
  },
  comparesGroup: true,
  turnKey: ({ turnRewards }) => (turnRewards === undefined ? undefined : "turnRewards"),
  compute: (step, options) => ({
    groups: step.map((group) =>
      compareGroup(
        group,
        (rewards) => groupRelative(rewards, options),
        (rewards) => groupBaselines(rewards, options),
        options.turnRewards,
      ),
    ),
  }),
});

interface GroupOptions {
  readonly normalizeByStd: boolean;
  readonly epsilon: number;
}

/** @returns one advantage per reward, in their order. */
export function groupRelative(rewards: readonly number[], options: GroupOptions): number[] {
  const baselines = groupBaselines(rewards, options);
  return rewards.map((reward, i) => (reward - baselines[i]!.mean) / baselines[i]!.scale);
}

/** What each reward is compared with: the mean and the deviation of the group. */
export function groupBaselines(
  rewards: readonly number[],
  { normalizeByStd, epsilon }: GroupOptions,
): Baseline[] {
  const count = rewards.length;
  if (rewards.every((reward) => reward === rewards[0])) {
    return rewards.map((reward) => ({ mean: reward, scale: 1 }));
  }
  const mean = rewards.reduce((total, reward) => total + reward, 0) / count;
  if (!normalizeByStd) return rewards.map(() => ({ mean, scale: 1 }));
  const squares = rewards.reduce((total, reward) => total + (reward - mean) ** 2, 0);
  const scale = Math.sqrt(squares / (count - 1)) + epsilon;
  return rewards.map(() => ({ mean, scale }));
}
