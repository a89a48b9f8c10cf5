/** Reads from the bus for how long the replicas of a run were busy. */

import { deadline, describeError } from "@hone/core";
import type { Bucket } from "@hone/messaging";
import type { ReplicaState } from "@hone/proto-gen/policy";
import type { Logger } from "@hone/telemetry";
import type { ReplicaTimes } from "../domain/report/engine-idle.ts";

/** A step waits no longer than this for a figure. */
const READ_DEADLINE_MS = 1_000;

/** @param replicas the bucket in which replicas report. */
export function readReplicaTimes(replicas: Bucket<ReplicaState>, logger: Logger): ReplicaTimes {
  return async function replicaTimes(runId, signal) {
    try {
      const read = () => replicas.entries();
      const entries = await deadline("the times of the replicas", READ_DEADLINE_MS, read, { signal });
      const serving = entries.filter(({ value }) => value.model === runId);
      return serving.map(({ value: { replica, upMs, busyMs } }) => ({
        replica,
        upMs: Number(upMs),
        busyMs: Number(busyMs),
      }));
    } catch (error) {
      // The step has everything that it needs without this figure.
      logger.debug("it is unknown how long the engines idled", { runId, error: describeError(error) });
      return undefined;
    }
  };
}
