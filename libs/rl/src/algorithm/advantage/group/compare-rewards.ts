/** Advantages that compare the rewards of a group, one number for each rollout. */

import type { RewardedGroup, StepAdvantages } from "../advantage.ts";
import type { Comparison } from "../turn/turn-rewards.ts";

/** The advantages of a step by a comparison of the rewards of each group. */
export function compareRewards(step: readonly RewardedGroup[], compare: Comparison): StepAdvantages {
  return {
    groups: step.map(({ rollouts }) =>
      compare(rollouts.map(({ reward }) => reward)).map((advantage) => ({ advantage })),
    ),
  };
}
