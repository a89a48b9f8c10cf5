/**
 * Which runs are over, as the bucket RUN_STATE tells; their rollouts end.
 *
 * V1: a rollout that starts after its run ended is ended at once: the last known phase of a run counts.
 * V2: the end of a failed run that was resumed since is no end of the rollouts that were asked for afterwards.
 */

import { type Bucket, type BucketChange, BucketName, type Bus, openBucket } from "@hone/messaging";
import { RunPhase, type RunState, RunStateSchema } from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import { RolloutCancelledError, ServiceStoppingError } from "../domain/errors.ts";

const ENDED_PHASES: ReadonlySet<RunPhase> = new Set([
  RunPhase.COMPLETED,
  RunPhase.FAILED,
  RunPhase.CANCELLED,
]);

export class ActiveRuns {
  /** With how often each had been resumed. */
  readonly #ended = new Map<string, number>();
  readonly #rollouts = new Map<string, Map<AbortController, number>>();
  readonly #stopped = new AbortController();

  /** Starts to follow the bucket. */
  static async watch(bus: Bus, logger: Logger): Promise<ActiveRuns> {
    const runs = new ActiveRuns();
    const bucket = await openBucket(bus, BucketName.runState, RunStateSchema);
    void runs.#follow(bucket, logger);
    return runs;
  }

  /** A signal that aborts when the run ends or this service gives its rollouts back. @returns it, and what ends its use. */
  enter(runId: string, resumption: number): { signal: AbortSignal; leave: () => void } {
    const controller = new AbortController();
    if ((this.#ended.get(runId) ?? -1) >= resumption) controller.abort(new RolloutCancelledError(runId)); // V1, V2
    if (this.#stopped.signal.aborted) controller.abort(new ServiceStoppingError());
    const rollouts = this.#rollouts.get(runId) ?? new Map<AbortController, number>();
    this.#rollouts.set(runId, rollouts.set(controller, resumption));
    return {
      signal: controller.signal,
      leave: () => {
        rollouts.delete(controller);
        if (rollouts.size === 0 && this.#rollouts.get(runId) === rollouts) this.#rollouts.delete(runId);
      },
    };
  }

  /** Gives back every rollout that still runs, and follows the bucket no longer. */
  stop(): void {
    this.#stopped.abort();
    for (const rollouts of this.#rollouts.values()) {
      for (const controller of rollouts.keys()) controller.abort(new ServiceStoppingError());
    }
  }

  /** Takes up what the bucket says of one run. */
  apply({ key: runId, value }: BucketChange<RunState>): void {
    // A run whose entry is gone was over long before.
    if (value === undefined || !ENDED_PHASES.has(value.phase)) {
      this.#ended.delete(runId);
      return;
    }
    this.#ended.set(runId, value.resumption);
    for (const [controller, resumption] of this.#rollouts.get(runId) ?? []) {
      if (resumption <= value.resumption) controller.abort(new RolloutCancelledError(runId)); // V2
    }
  }

  async #follow(bucket: Bucket<RunState>, logger: Logger): Promise<void> {
    const onError = (error: unknown) =>
      logger.warn("the state of the runs is not followed for a moment", { error });
    for await (const change of bucket.watch(this.#stopped.signal, onError)) this.apply(change);
  }
}
