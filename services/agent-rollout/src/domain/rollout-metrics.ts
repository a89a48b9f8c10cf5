/** Metrics of rollouts. */

import { counterOf, histogramOf, Instrument, observeMetric } from "@hone/telemetry";

/** A rollout that goes back to the queue has no outcome of the closed set. */
const GIVEN_BACK = "given_back";
/** An attempt that is followed by another one failed for a reason outside the agent. */
const FAILED_ATTEMPT = "infra_failed";

const attempts = counterOf(Instrument.attempts);
const seconds = histogramOf(Instrument.rolloutSeconds);
const inFlight = new Map<number, number>();

// Registered once for the life of the process, as all consumers share one count.
observeMetric(Instrument.rolloutsInFlight, () =>
  Array.from(inFlight, ([version, value]) => ({ labels: { policy_version: String(version) }, value })),
);

/** What `countRollout` needs to know of a rollout's end. */
interface RolloutEnd {
  readonly outcome: string;
  readonly failedAttempts: readonly unknown[];
}

/** Counts a rollout as in flight. @returns a function that counts its end; without an argument, the rollout went back to the queue. */
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
