/**
 * From scores and outcomes to rewards.
 *
 * R1: an outcome that says nothing about the agent (`infra_failed`, `cancelled`, `stale`) never becomes a reward,
 *     whatever the rules say.
 * R2: `completed` is always worth its scores; `truncated`, `agent_failed` and `timed_out` follow the run's rule.
 */

import { isScorable, Outcome } from "@hone/core";
import type { Rollout, Score } from "./rollout.ts";

/** What becomes of a rollout that did not come to its own end. */
export const OutcomeRule = {
  /** Its scores count as if it had completed. */
  score: "score",
  /** It is trained with reward 0, whatever its scores say. */
  zero: "zero",
  /** It is left out of its group's statistics and of training. */
  leaveOut: "leave_out",
} as const;
export type OutcomeRule = (typeof OutcomeRule)[keyof typeof OutcomeRule];

/** The run's rules, one for each outcome that has a choice. */
export interface OutcomeRules {
  readonly truncated: OutcomeRule;
  readonly agentFailed: OutcomeRule;
  readonly timedOut: OutcomeRule;
}

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
  switch (ruleFor(rollout.outcome, rules)) {
    case OutcomeRule.score:
      return weightedSum(rollout.scores);
    case OutcomeRule.zero:
      return 0;
    case OutcomeRule.leaveOut:
      return undefined;
  }
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
      return OutcomeRule.score; // R2
    case Outcome.infraFailed:
    case Outcome.cancelled:
    case Outcome.stale:
      return OutcomeRule.leaveOut;
  }
}
