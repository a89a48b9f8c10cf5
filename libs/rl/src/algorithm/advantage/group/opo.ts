/**
 * The baseline of least variance for a group (OPO, Hao et al., "On-Policy RL with Optimal Reward Baseline", 2025,
 * https://arxiv.org/abs/2505.23585): the mean of its rewards weighted by the number of sampled tokens.
 *
 *   A_i = r_i - sum of n_j r_j / sum of n_j        n_j sampled tokens of rollout j
 *
 * A group of one and one of equal rewards have 0.
 */

import { rolloutTokenCount } from "../../../rollout.ts";
import { isFlat } from "../../statistics.ts";
import { defineAdvantage } from "../advantage.ts";

export const opo = defineAdvantage({
  kind: "opo",
  options: {},
  comparesGroup: true,
  compute: (step) => ({
    groups: step.map(({ rollouts }) =>
      againstTokenMean(
        rollouts.map(({ reward }) => reward),
        rollouts.map(({ rollout }) => rolloutTokenCount(rollout)),
      ).map((advantage) => ({ advantage })),
    ),
  }),
});

/**
 * @param tokenCounts sampled tokens of each rollout.
 * @returns one advantage per reward, in their order.
 */
export function againstTokenMean(rewards: readonly number[], tokenCounts: readonly number[]): number[] {
  const total = tokenCounts.reduce((sum, count) => sum + count, 0);
  if (total === 0 || isFlat(rewards)) return rewards.map(() => 0);
  const weighted = rewards.reduce((sum, reward, index) => sum + tokenCounts[index]! * reward, 0);
  return rewards.map((reward) => reward - weighted / total);
}
