/** How a rollout ends. */

/** All ways in which a rollout ends, and what happens with it then. */
export const Outcome = {
  /** The agent finished: the rollout is trained on. */
  completed: "completed",
  /** A limit on turns or tokens was reached: the run's rule for truncation decides. */
  truncated: "truncated",
  /** The agent's own code failed: the run's rule for failures decides. */
  agentFailed: "agent_failed",
  /** Its deadline passed: the run's rule for time-outs decides. */
  timedOut: "timed_out",
  /** Every attempt failed for a reason outside the agent: it is left out of its group's statistics, and counted. */
  infraFailed: "infra_failed",
  /** The run did not need it any more: it is left out. */
  cancelled: "cancelled",
  /** Its tokens are older than the run allows: it is left out. */
  stale: "stale",
} as const;
export type Outcome = (typeof Outcome)[keyof typeof Outcome];

/** Whether an outcome says something about the agent. Rollouts with the other outcomes never get a reward. */
export function isScorable(outcome: Outcome): boolean {
  return outcome !== Outcome.infraFailed && outcome !== Outcome.cancelled && outcome !== Outcome.stale;
}
