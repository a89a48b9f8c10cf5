/**
 * The distance from the group's mean, whitened over all tokens of the step in the place of a division by the group's
 * deviation (REINFORCE++ with a baseline, Hu, 2025, https://arxiv.org/abs/2501.03262).
 *
 *   A_i = whiten(r_i - mean(r))
 *
 * A group of one and one of equal rewards have 0 before they are whitened.
 */

import { isFlat, meanOf } from "../../statistics.ts";
import { defineAdvantage } from "../advantage.ts";
import { compareRewards } from "../group/compare-rewards.ts";

export const reinforcePlusPlusBaseline = defineAdvantage({
  kind: "reinforce_plus_plus_baseline",
  options: {},
  comparesGroup: true,
  whitens: true,
  compute: (step) =>
    compareRewards(step, againstMean, (rewards) => rewards.map(() => ({ mean: meanOf(rewards), scale: 1 }))),
});

function againstMean(rewards: readonly number[]): number[] {
  if (isFlat(rewards)) return rewards.map(() => 0);
  const mean = meanOf(rewards);
  return rewards.map((reward) => reward - mean);
}
