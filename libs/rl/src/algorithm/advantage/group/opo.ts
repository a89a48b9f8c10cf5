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
import { partsOfComparison } from "../parts.ts";

export const opo = defineAdvantage({
  kind: "opo",
  options: {},
  comparesGroup: true,
  compute: (step) => ({
    groups: step.map(({ rollouts }) => {
      const rewards = rollouts.map(({ reward }) => reward);
      const counts = rollouts.map(({ rollout }) => rolloutTokenCount(rollout));
      const baselines = tokenMeans(rewards, counts);
      return rollouts.map((rewarded, i) => ({
        advantage: rewarded.reward - baselines[i]!,
        parts: partsOfComparison(rewarded, { mean: baselines[i]!, scale: 1 }),
      }));
    }),
  }),
});

/**
 * @param tokenCounts sampled tokens of each rollout.
 * @returns one advantage per reward, in their order.
 */
export function againstTokenMean(rewards: readonly number[], tokenCounts: readonly number[]): number[] {
  const baselines = tokenMeans(rewards, tokenCounts);
  return rewards.map((reward, i) => reward - baselines[i]!);
}

/** What each reward is compared with: the mean of the group, weighted by sampled tokens. */
function tokenMeans(rewards: readonly number[], tokenCounts: readonly number[]): number[] {
  const total = tokenCounts.reduce((sum, count) => sum + count, 0);
  if (total === 0 || isFlat(rewards)) return [...rewards];
  const weighted = rewards.reduce((sum, reward, index) => sum + tokenCounts[index]! * reward, 0);
  return rewards.map(() => weighted / total);
}
