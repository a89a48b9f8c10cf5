/** Follows RUN_STATE, so that the policy of every active run is loaded, and that of an ended run is unloaded. */

import { type BucketChange, BucketName, type Bus, openBucket } from "@hone/messaging";
import { type RunState, RunStateSchema } from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import type { PolicyKeeper } from "../domain/policy-keeper.ts";
import { hasEnded, policySourcesOf } from "./policy-source.ts";

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
  /** The models of each run that are wanted. */
  const wanted = new Map<string, ReadonlySet<string>>();
  for await (const change of runs.watch(signal, onError)) apply(change, wanted, options);
}

function apply(
  { key, value }: BucketChange<RunState>,
  wanted: Map<string, ReadonlySet<string>>,
  { keeper, stateDir, logger }: FollowRunsOptions,
): void {
  const hasEndedNow = value === undefined || hasEnded(value);
  const sources = hasEndedNow ? [] : policySourcesOf(key, value, stateDir, logger);
  const models = new Set(sources.map(({ model }) => model));
  if (hasEndedNow) {
    for (const model of wanted.get(key) ?? [key]) keeper.drop(model);
    wanted.delete(key);
    return;
  }
  for (const source of sources) keeper.want(source);
  if (models.size > 0) wanted.set(key, models);
}
