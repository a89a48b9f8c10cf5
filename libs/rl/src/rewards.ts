/**
 * From scores and outcomes to rewards.
 *
 * R1: an outcome that says nothing about the agent (`infra_failed`, `cancelled`, `stale`) never becomes a reward,
 *     whatever the rules say.
 * R2: `completed` is always worth its scores; `truncated`, `agent_failed` and `timed_out` follow the run's rule.
 */

import { isScorable, Outcome } from "@hone/core";
import type { RewardComponent } from "./algorithm/advantage/advantage.ts";
import type { OutcomeRule, OutcomeRules } from "./algorithm/schema.ts";
import { type Rollout, rolloutTokenCount, type Score } from "./rollout.ts";

/** Sum of weight x value, in the order of the judges. */
export function weightedSum(scores: readonly Score[]): number {
  return scores.reduce((total, score) => total + score.weight * score.value, 0);
}

/** The reward of a rollout; undefined when it is left out. */
export function rewardOf(
  rollout: Pick<Rollout, "outcome" | "scores">,
  rules: OutcomeRules,
): number | undefined {
  if (!isScorable(rollout.outcome)) return undefined; // R1
  const rule = ruleFor(rollout.outcome, rules);
  if (rule === "keep") return weightedSum(rollout.scores);
  return rule === "drop" ? undefined : rule.reward;
}

/**
 * The reward of a rollout that may be trained; undefined when it is left out. One without a sampled token has nothing to train, and
 * its reward would still shift the others' baseline.
 */
export function trainedRewardOf(rollout: Rollout, rules: OutcomeRules): number | undefined {
  const reward = rewardOf(rollout, rules);
  return reward === undefined || rolloutTokenCount(rollout) === 0 ? undefined : reward;
}

/**
 * Rewards of a rollout's turns: of each turn the sum of weight x value over the judges, 0 where none gave it one.
 * @returns undefined where its scores do not count (left out, or worth a fixed reward) or no judge rewards turns.
 */
export function turnRewardsOf(
  rollout: Pick<Rollout, "outcome" | "scores" | "turnCount">,
  rules: OutcomeRules,
): number[] | undefined {
  const { outcome, scores, turnCount } = rollout;
  if (!isScorable(outcome) || ruleFor(outcome, rules) !== "keep") return undefined;
  if (scores.every(({ turnRewards = [] }) => turnRewards.length === 0)) return undefined;
  const rewards = new Array<number>(turnCount).fill(0);
  for (const { weight, turnRewards = [] } of scores) {
    for (const { turn, value } of turnRewards) {
      if (turn < turnCount) rewards[turn] = rewards[turn]! + weight * value;
    }
  }
  return rewards;
}

/**
 * What each judge gave a rollout.
 * @returns undefined where its scores do not count.
 */
export function componentsOf(
  { outcome, scores }: Pick<Rollout, "outcome" | "scores">,
  rules: OutcomeRules,
): RewardComponent[] | undefined {
  if (!isScorable(outcome) || ruleFor(outcome, rules) !== "keep") return undefined;
  return scores.map(({ judge, weight, value }) => ({ name: judge, weight, value }));
}

function ruleFor(outcome: Outcome, rules: OutcomeRules): OutcomeRule {
  switch (outcome) {
    case Outcome.truncated:
      return rules.truncated;
    case Outcome.agentFailed:
      return rules.agentFailed;
    case Outcome.timedOut:
      return rules.timedOut;
    case Outcome.completed:
      return "keep"; // R2
    case Outcome.infraFailed:
    case Outcome.cancelled:
    case Outcome.stale:
      return "drop";
  }
}
