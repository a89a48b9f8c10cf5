/** Follows RUN_STATE: every active run's policy is to be loaded, an ended run's is not. */

import path from "node:path";
import { type BucketChange, BucketName, type Bus, openBucket } from "@hone/messaging";
import { RunPhase, type RunState, RunStateSchema } from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import type { PolicyKeeper } from "../domain/policy-keeper.ts";

export interface FollowRunsOptions {
  readonly bus: Bus;
  readonly keeper: PolicyKeeper;
  /** Folder below which the runs' locations lie. */
  readonly stateDir: string;
  readonly logger: Logger;
}

/** Follows until the signal aborts. */
export async function followRuns(options: FollowRunsOptions, signal: AbortSignal): Promise<void> {
  const { bus, logger } = options;
  const runs = await openBucket(bus, BucketName.runState, RunStateSchema);
  const onError = (error: unknown) =>
    logger.warn("the state of the runs cannot be followed, trying again", { error });
  for await (const change of runs.watch(signal, onError)) apply(change, options);
}

function apply(
  { key, value }: BucketChange<RunState>,
  { keeper, stateDir, logger }: FollowRunsOptions,
): void {
  if (value === undefined || hasEnded(value.phase)) {
    keeper.drop(key);
    return;
  }
  // Before its first weights are written a run has no location.
  if (value.location === "") return;
  const folder = path.resolve(stateDir, value.location);
  if (folder !== stateDir && !folder.startsWith(stateDir + path.sep)) {
    logger.error("a run's weights lie outside the state folder", { run: key, location: value.location });
    return;
  }
  keeper.want({ model: key, version: value.version, folder, digest: value.digest });
}

function hasEnded(phase: RunPhase): boolean {
  return phase === RunPhase.COMPLETED || phase === RunPhase.FAILED || phase === RunPhase.CANCELLED;
}
