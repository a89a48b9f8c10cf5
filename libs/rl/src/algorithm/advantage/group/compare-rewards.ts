/** Advantages that compare the rewards of a group, one number for each rollout. */

import type { RewardedGroup, StepAdvantages } from "../advantage.ts";
import { type Baseline, partsOfComparison } from "../parts.ts";
import type { Comparison } from "../turn/turn-rewards.ts";

/**
 * The advantages of a step by a comparison of the rewards of each group.
 * @param baselines what each reward was compared with, for the record.
 */
export function compareRewards(
  step: readonly RewardedGroup[],
  compare: Comparison,
  baselines: (rewards: readonly number[]) => readonly Baseline[],
): StepAdvantages {
  return {
    groups: step.map(({ rollouts }) => {
      const rewards = rollouts.map(({ reward }) => reward);
      const comparedWith = baselines(rewards);
      return compare(rewards).map((advantage, i) => ({
        advantage,
        parts: partsOfComparison(rollouts[i]!, comparedWith[i]!),
      }));
    }),
  };
}
