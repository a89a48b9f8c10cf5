/**
 * Follows the bucket RUN_STATE: ends the rollouts of runs that are over, and tells others about new versions of their policy.
 *
 * V1: a rollout that starts after its run has ended is ended at once.
 * V2: when a failed run is resumed, its earlier end does not end the rollouts that are requested after the resumption.
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

/** What is known of a run. */
export type KnownRun = "active" | "ended" | "unknown";

export class ActiveRuns {
  /** Runs that are over, with the number of their resumptions. */
  readonly #ended = new Map<string, number>();
  /** Runs that have a state and are not over. */
  readonly #active = new Set<string>();
  readonly #rollouts = new Map<string, Map<AbortController, number>>();
  /** By run: who wants to know of its versions. */
  readonly #listeners = new Map<string, Set<(version: number) => void>>();
  readonly #stopped = new AbortController();

  /** Starts to follow the bucket. */
  static async watch(bus: Bus, logger: Logger): Promise<ActiveRuns> {
    const runs = new ActiveRuns();
    const bucket = await openBucket(bus, BucketName.runState, RunStateSchema);
    void runs.#follow(bucket, logger);
    return runs;
  }

  /** @returns a signal that aborts when the run ends or this service gives its rollouts back, and a function to call afterwards. */
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

  stateOf(runId: string): KnownRun {
    if (this.#active.has(runId)) return "active";
    return this.#ended.has(runId) ? "ended" : "unknown";
  }

  /** Calls `listener` with every version of a run's policy that is published. @returns a function that ends this. */
  onVersion(runId: string, listener: (version: number) => void): () => void {
    const listeners = this.#listeners.get(runId) ?? new Set();
    this.#listeners.set(runId, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(runId) === listeners) this.#listeners.delete(runId);
    };
  }

  /** Gives back every rollout that is still running, and stops following the bucket. */
  stop(): void {
    this.#stopped.abort();
    for (const rollouts of this.#rollouts.values()) {
      for (const controller of rollouts.keys()) controller.abort(new ServiceStoppingError());
    }
  }

  /** Applies a change of one run's state. */
  apply({ key: runId, value }: BucketChange<RunState>): void {
    // A run whose entry was removed had been over for long.
    if (value === undefined || !ENDED_PHASES.has(value.phase)) {
      this.#ended.delete(runId);
      this.#active.delete(runId);
      if (value === undefined) return;
      this.#active.add(runId);
      for (const listener of this.#listeners.get(runId) ?? []) listener(value.version);
      return;
    }
    this.#active.delete(runId);
    this.#ended.set(runId, value.resumption);
    for (const [controller, resumption] of this.#rollouts.get(runId) ?? []) {
      if (resumption <= value.resumption) controller.abort(new RolloutCancelledError(runId)); // V2
    }
  }

  async #follow(bucket: Bucket<RunState>, logger: Logger): Promise<void> {
    const onError = (error: unknown) =>
      logger.warn("the states of runs cannot be followed at the moment", { error });
    for await (const change of bucket.watch(this.#stopped.signal, onError)) this.apply(change);
  }
}
