/**
 * Group policy gradient (GPG, Chu et al., 2025, https://arxiv.org/abs/2504.02546): the distance from the group's mean,
 * scaled up where few rollouts of the step earned anything, so that a step with many of reward 0 teaches as strongly.
 *
 *   A_i = alpha (r_i - mean(r)) / norm        alpha = rollouts of the step / those of them with r != 0
 *
 * A group of one and one of equal rewards have 0. The published loss is `reinforce` on these advantages.
 */

import { z } from "zod";
import { isFlat, meanOf } from "../../statistics.ts";
import { defineAdvantage } from "../advantage.ts";
import { compareRewards } from "./compare-rewards.ts";

export const gpg = defineAdvantage({
  kind: "gpg",
  options: {
    /** By which advantages are divided. verl: f_norm. */
    norm: z.number().positive().default(1),
  },
  comparesGroup: true,
  compute: (step, { norm }) => {
    const rewards = step.flatMap(({ rollouts }) => rollouts.map(({ reward }) => reward));
    const alpha = rewards.length / Math.max(1, rewards.filter((reward) => reward !== 0).length);
    const compared = compareRewards(
      step,
      (group) => scaledDistances(group, alpha / norm),
      (group) => group.map(() => ({ mean: meanOf(group), scale: norm / alpha })),
    );
    return { ...compared, metrics: { alpha } };
  },
});

/** @returns one advantage per reward, in their order. */
function scaledDistances(rewards: readonly number[], factor: number): number[] {
  if (isFlat(rewards)) return rewards.map(() => 0);
  const mean = meanOf(rewards);
  return rewards.map((reward) => factor * (reward - mean));
}
