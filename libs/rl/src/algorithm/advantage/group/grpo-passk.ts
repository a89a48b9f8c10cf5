/**
 * Pass@k as the goal (Tang et al., "Optimizing Language Models for Inference Time Objectives using Reinforcement Learning",
 * 2025, https://arxiv.org/abs/2503.19595): only the best rollout of a group is reinforced, by how much it is better than the
 * second best.
 *
 *   A_best = (r_best - r_second) / (std(r) + eps)       all others: 0
 *
 * std is the sample deviation of the group (divisor n - 1). A group of one and one whose best are equal have 0: verl fails
 * on the first.
 */

import { z } from "zod";
import { sampleStd } from "../../statistics.ts";
import { defineAdvantage } from "../advantage.ts";
import { compareRewards } from "./compare-rewards.ts";

export const grpoPassk = defineAdvantage({
  kind: "grpo_passk",
  options: {
    /** Divide by the group's standard deviation. */
    normalizeByStd: z.boolean().default(true),
    /** Added to the deviation. */
    epsilon: z.number().positive().default(1e-6),
  },
  comparesGroup: true,
  compute: (step, options) => compareRewards(step, (rewards) => bestAgainstSecond(rewards, options)),
});

/** @returns one advantage per reward, in their order. */
export function bestAgainstSecond(
  rewards: readonly number[],
  { normalizeByStd, epsilon }: { readonly normalizeByStd: boolean; readonly epsilon: number },
): number[] {
  if (rewards.length < 2) return rewards.map(() => 0);
  const best = rewards.reduce((found, reward, index) => (reward > rewards[found]! ? index : found), 0);
  const second = Math.max(...rewards.filter((_, index) => index !== best));
  const gap = rewards[best]! - second;
  const advantage = normalizeByStd ? gap / (sampleStd(rewards) + epsilon) : gap;
  return rewards.map((_, index) => (index === best ? advantage : 0));
}
