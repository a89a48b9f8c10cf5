/** Follows RUN_STATE, so that the policy of every active run is loaded, and that of an ended run is unloaded. */

import { type BucketChange, BucketName, type Bus, openBucket } from "@hone/messaging";
import { type RunState, RunStateSchema } from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import type { PolicyKeeper } from "../domain/policy-keeper.ts";
import { hasEnded, policySourceOf } from "./policy-source.ts";

export interface FollowRunsOptions {
  readonly bus: Bus;
  readonly keeper: Pick<PolicyKeeper, "want" | "drop">;
  /** Folder that the locations of runs are relative to. */
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
  if (value === undefined || hasEnded(value)) {
    keeper.drop(key);
    return;
  }
  const source = policySourceOf(key, value, stateDir, logger);
  if (source !== undefined) keeper.want(source);
}
