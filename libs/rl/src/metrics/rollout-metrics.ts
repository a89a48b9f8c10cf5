/** What the rollouts of a step or of an evaluation say together. */

import { Outcome } from "@hone/core";
import type { OutcomeRules } from "../algorithm/schema.ts";
import { rewardOf } from "../rewards.ts";
import { type Rollout, rolloutTokenCount, type Score } from "../rollout.ts";
import { type MetricSet, Reduction } from "./reduction.ts";

/**
 * Adds the figures of `rollouts`:
 *   reward/mean, reward/std (population), reward/min, reward/max   over the rollouts that have a reward
 *   <name>                                                         mean of an agent metric over those that report it;
 *                                                                  agent/<name> where Hone uses the name itself
 *   judge/<judge>, judge/<judge>/<figure>                          mean value and figures of each judge
 *   judge/<judge>/turn_reward                                      mean of what a judge gave single turns
 *   episodes                                                       rollouts made, whatever their outcome
 *   tokens                                                         tokens in their samples, prompts included
 *   turns/mean, tokens/sampled_mean                                of those with a reward
 *   attempts/failed                                                attempts before the last ones, failed outside the agent
 *   outcome/<name>                                                 how many ended so, every outcome named
 */
export function addRolloutMetrics(
  metrics: MetricSet,
  rollouts: readonly Rollout[],
  rules: OutcomeRules,
): void {
  const rewards: number[] = [];
  for (const outcome of Object.values(Outcome)) metrics.add(`outcome/${outcome}`, Reduction.sum, 0);
  metrics.add("episodes", Reduction.sum, rollouts.length);
  metrics.add("tokens", Reduction.sum, 0);
  metrics.add("attempts/failed", Reduction.sum, 0);
  for (const rollout of rollouts) {
    metrics.add(`outcome/${rollout.outcome}`, Reduction.sum, 1);
    const tokens = rollout.samples.reduce((total, sample) => total + sample.tokenIds.length, 0);
    metrics.add("tokens", Reduction.sum, tokens);
    metrics.add("attempts/failed", Reduction.sum, rollout.attempt - 1);
    const reward = rewardOf(rollout, rules);
    if (reward === undefined) continue;
    rewards.push(reward);
    metrics.add("reward/mean", Reduction.mean, reward);
    metrics.add("reward/min", Reduction.min, reward);
    metrics.add("reward/max", Reduction.max, reward);
    metrics.add("tokens/sampled_mean", Reduction.mean, rolloutTokenCount(rollout));
    metrics.add("turns/mean", Reduction.mean, rollout.turnCount);
    // Sorted, so that the order in which an agent names its metrics cannot show.
    for (const name of Object.keys(rollout.metrics).sort()) {
      metrics.add(agentMetricName(name), Reduction.mean, rollout.metrics[name]!);
    }
    for (const score of rollout.scores) addScore(metrics, score);
  }
  if (rewards.length > 0) metrics.add("reward/std", Reduction.last, populationStd(rewards));
}

function addScore(
  metrics: MetricSet,
  { judge, value, metrics: figures = {}, turnRewards = [] }: Score,
): void {
  metrics.add(`judge/${judge}`, Reduction.mean, value);
  for (const turn of turnRewards) metrics.add(`judge/${judge}/turn_reward`, Reduction.mean, turn.value);
  for (const name of Object.keys(figures).sort()) {
    metrics.add(`judge/${judge}/${name}`, Reduction.mean, figures[name]!);
  }
}

/** Names of a step's own figures, which an agent's metric must not be mixed into. A name with "/" is Hone's too. */
const OWN_NAMES: ReadonlySet<string> = new Set([
  "episodes",
  "tokens",
  "loss",
  "grad_norm",
  "entropy",
  "clip_fraction",
]);

function agentMetricName(name: string): string {
  return OWN_NAMES.has(name) || name.includes("/") ? `agent/${name}` : name;
}

function populationStd(values: readonly number[]): number {
  const mean = values.reduce((total, value) => total + value, 0) / values.length;
  return Math.sqrt(values.reduce((total, value) => total + (value - mean) ** 2, 0) / values.length);
}
