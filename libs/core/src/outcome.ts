/** How a rollout ends. */

/** A closed set; each value states what becomes of the rollout. */
export const Outcome = {
  /** The agent came to its end: trained. */
  completed: "completed",
  /** A limit on turns or tokens cut it off: follows the run's rule for truncation. */
  truncated: "truncated",
  /** The agent's own code failed: follows the run's rule for failures. */
  agentFailed: "agent_failed",
  /** Its deadline passed: follows the run's rule for time-outs. */
  timedOut: "timed_out",
  /** Every attempt failed for a reason outside the agent: left out of its group's statistics, and counted. */
  infraFailed: "infra_failed",
  /** The run asked for it no longer: left out. */
  cancelled: "cancelled",
  /** Its tokens are older than the run allows: left out. */
  stale: "stale",
} as const;
export type Outcome = (typeof Outcome)[keyof typeof Outcome];

/** Whether an outcome says something about the agent; the others never become a reward. */
export function isScorable(outcome: Outcome): boolean {
  return outcome !== Outcome.infraFailed && outcome !== Outcome.cancelled && outcome !== Outcome.stale;
}
