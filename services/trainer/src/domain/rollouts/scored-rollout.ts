/** A rollout as it came over the stream: what training reads of it, and where it stood. */

import type { Rollout } from "@hone/rl";
import type { Context } from "@hone/telemetry";

export interface ScoredRollout extends Rollout {
  /** Position in the stream. */
  readonly sequence: number;
  /** Room that it takes in the stream as a scored episode. */
  readonly bytes: number;
  /** How often the run had been resumed after a failure when it asked for the rollout. */
  readonly resumption: number;
  /** Trace of the rollout, which its `train` span joins. */
  readonly trace: Context;
}

/** How much the stream of episodes holds, and of whom. */
export interface EpisodeRoom {
  readonly bytes: number;
  /** Undefined = nobody gave it a size. */
  readonly maxBytes: number | undefined;
  /** Whether who has an episode to store may have to hold it. */
  readonly isFull: boolean;
  /** Position of the first episode that is there. */
  readonly firstSequence: number;
  /** Runs of which it holds an episode. */
  readonly runs: readonly string[];
}

/** The scored rollouts of a run, in the order of the stream. */
export interface ScoredRollouts {
  read(runId: string, fromSequence: number, signal: AbortSignal): AsyncIterable<ScoredRollout>;
  /** Position of the last scored episode of the run that is stored now; 0 = there is none. */
  lastSequence(runId: string): Promise<number>;
  /** Runs of which an episode is stored, finished or scored. */
  runs(): Promise<string[]>;
  /** What the stream holds of all runs, and how much it may. */
  room(): Promise<EpisodeRoom>;
  /** Drops the run's episodes below a position, as far as no other reader needs them; the tracer may be left behind. */
  purgeBelow(runId: string, sequence: number): Promise<void>;
}
