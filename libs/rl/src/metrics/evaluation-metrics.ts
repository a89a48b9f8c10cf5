/** What the rollouts of an evaluation say together, task by task. */

import { Outcome } from "@hone/core";
import type { OutcomeRules } from "../algorithm/schema.ts";
import { rewardOf } from "../rewards.ts";
import type { Rollout } from "../rollout.ts";
import { type MetricSet, Reduction } from "./reduction.ts";

export interface PassRule {
  /** The k of every pass@k. */
  readonly passAt: readonly number[];
  /** Reward from which a rollout passes whose agent reports no `success`. */
  readonly passReward: number;
}

/** The agent's metric that says whether it did what was asked. */
const SUCCESS = "success";
/** Rewards are weighted sums of floats: 0.7 + 0.2 + 0.1 is a little less than 1. */
const REWARD_TOLERANCE = 1e-9;

/**
 * Adds the figures of one mode of an evaluation:
 *   tasks           tasks of which at least one rollout has a reward
 *   pass@<k>        mean over the tasks with at least k such rollouts; left out where no task has so many
 *   reward/stderr   standard error of the mean reward, over the means of the tasks, as rollouts of one task are no
 *                   independent draws; left out with fewer than two tasks
 * @param tasks the rollouts of each task.
 */
export function addEvaluationMetrics(
  metrics: MetricSet,
  tasks: readonly (readonly Rollout[])[],
  rules: OutcomeRules,
  { passAt, passReward }: PassRule,
): void {
  const means: number[] = [];
  for (const rollouts of tasks) {
    const rewards = rollouts.map((rollout) => rewardOf(rollout, rules));
    const counted = rewards.filter((reward) => reward !== undefined);
    if (counted.length === 0) continue;
    means.push(counted.reduce((sum, reward) => sum + reward, 0) / counted.length);
    const passed = rollouts.filter((rollout, i) => isPassed(rollout, rewards[i], passReward)).length;
    for (const k of passAt) {
      if (k <= counted.length) metrics.add(`pass@${k}`, Reduction.mean, passAtK(counted.length, passed, k));
    }
  }
  metrics.add("tasks", Reduction.sum, means.length);
  if (means.length > 1) metrics.add("reward/stderr", Reduction.last, standardError(means));
}

/**
 * The unbiased estimate of the chance that at least one of k rollouts passes, from n rollouts of which c passed:
 * 1 - C(n - c, k) / C(n, k), as a product that no factorial overflows (https://arxiv.org/abs/2107.03374, section 2.1).
 * @param k at most n.
 */
export function passAtK(n: number, c: number, k: number): number {
  if (n - c < k) return 1;
  let failing = 1;
  for (let i = n - c + 1; i <= n; i++) failing *= 1 - k / i;
  return 1 - failing;
}

/** Whether a rollout did what was asked: by the agent's own word, or by its reward. */
export function isPassed(rollout: Rollout, reward: number | undefined, passReward: number): boolean {
  if (reward === undefined) return false;
  const success = rollout.metrics[SUCCESS];
  const isAgentsWord = success !== undefined && rollout.outcome === Outcome.completed;
  return isAgentsWord ? success >= 1 : reward >= passReward - REWARD_TOLERANCE;
}

function standardError(means: readonly number[]): number {
  const mean = means.reduce((sum, value) => sum + value, 0) / means.length;
  const variance = means.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (means.length - 1);
  return Math.sqrt(variance / means.length);
}
