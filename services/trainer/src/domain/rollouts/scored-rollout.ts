/** A rollout as the stream of episodes delivers it, with what training needs and its position in the stream. */

import type { Rollout } from "@hone/rl";
import type { Context } from "@hone/telemetry";

export interface ScoredRollout extends Rollout {
  /** Position of the scored episode in the stream. */
  readonly sequence: number;
  /** Room that it takes in the stream, finished and scored. */
  readonly bytes: number;
  /** How many times the run had been resumed after a failure when it asked for the rollout. */
  readonly resumption: number;
  /** How long its last attempt took, without waits for Hone's own services; 0 = unknown. */
  readonly durationMs: number;
  /** Trace context of the rollout; its `train` span joins this trace. */
  readonly trace: Context;
}

/** How much the stream of episodes holds, and which runs the episodes belong to. */
export interface EpisodeRoom {
  readonly bytes: number;
  /** Undefined = the stream has no limit. */
  readonly maxBytes: number | undefined;
  /** Whether a service may have to wait before it can store an episode. */
  readonly isFull: boolean;
  /** Position of the first episode that the stream still holds. */
  readonly firstSequence: number;
  /** Ids of the runs that have an episode in the stream. */
  readonly runs: readonly string[];
}

/** The scored rollouts of a run, in the order of the stream. */
export interface ScoredRollouts {
  read(runId: string, fromSequence: number, signal: AbortSignal): AsyncIterable<ScoredRollout>;
  /** @returns the position of the run's last scored episode that is stored now; 0 = there is none. */
  lastSequence(runId: string): Promise<number>;
  /** @returns the ids of the runs that have an episode in the stream, finished or scored. */
  runs(): Promise<string[]>;
  /** @returns how much the stream holds for all runs together, and how much it may hold. */
  room(): Promise<EpisodeRoom>;
  /** Drops the run's episodes below a position, except those that a reader other than the tracer still needs. */
  purgeBelow(runId: string, sequence: number): Promise<void>;
}
