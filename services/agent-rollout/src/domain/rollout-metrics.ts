/** What this service counts of rollouts. */

import { counterOf, histogramOf, Instrument, observeMetric } from "@hone/telemetry";

/** A rollout that goes back to the queue has no outcome of the closed set. */
const GIVEN_BACK = "given_back";
/** An attempt that is followed by another one failed for a reason outside the agent. */
const FAILED_ATTEMPT = "infra_failed";

const attempts = counterOf(Instrument.attempts);
const seconds = histogramOf(Instrument.rolloutSeconds);
const inFlight = new Map<number, number>();

// For the process's life: what is in flight is one figure, whoever consumes.
observeMetric(Instrument.rolloutsInFlight, () =>
  Array.from(inFlight, ([version, value]) => ({ labels: { policy_version: String(version) }, value })),
);

/** What `countRollout` is told of the end. */
interface RolloutEnd {
  readonly outcome: string;
  readonly failedAttempts: readonly unknown[];
}

/** Counts a rollout that is at work. @returns ends it; without an end it went back to the queue. */
export function countRollout(version: number): (end?: RolloutEnd) => void {
  const startedAt = performance.now();
  inFlight.set(version, (inFlight.get(version) ?? 0) + 1);
  return (end) => {
    const left = (inFlight.get(version) ?? 1) - 1;
    if (left === 0) inFlight.delete(version);
    else inFlight.set(version, left);
    const outcome = end?.outcome ?? GIVEN_BACK;
    const failed = end?.failedAttempts.length ?? 0;
    if (failed > 0) attempts.of({ outcome: FAILED_ATTEMPT }).add(failed);
    attempts.of({ outcome }).add();
    seconds.of({ outcome }).observeSince(startedAt);
  };
}
