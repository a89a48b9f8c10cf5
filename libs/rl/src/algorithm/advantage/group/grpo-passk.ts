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
import type { Baseline } from "../parts.ts";
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
  compute: (step, options) =>
    compareRewards(
      step,
      (rewards) => bestAgainstSecond(rewards, options),
      (rewards) => secondBest(rewards, options),
    ),
});

interface BestOptions {
  readonly normalizeByStd: boolean;
  readonly epsilon: number;
}

/** @returns one advantage per reward, in their order. */
export function bestAgainstSecond(rewards: readonly number[], options: BestOptions): number[] {
  const baselines = secondBest(rewards, options);
  return rewards.map((reward, i) => (reward - baselines[i]!.mean) / baselines[i]!.scale);
}

/** What each reward is compared with: the best with the second best, all others with themselves. */
function secondBest(rewards: readonly number[], { normalizeByStd, epsilon }: BestOptions): Baseline[] {
  const itself = rewards.map((mean) => ({ mean, scale: 1 }));
  if (rewards.length < 2) return itself;
  const best = rewards.reduce((found, reward, index) => (reward > rewards[found]! ? index : found), 0);
  const second = Math.max(...rewards.filter((_, index) => index !== best));
  const scale = normalizeByStd ? sampleStd(rewards) + epsilon : 1;
  return itself.map((own, index) => (index === best ? { mean: second, scale } : own));
}
