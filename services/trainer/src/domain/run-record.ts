/** A run as the database knows it. */

import type { RunConfig } from "@hone/config";

/** Where a run stands between two processes; what it does at the moment is in its published state. */
export const RunStage = {
  /** Its request is read; the services have not all agreed to it yet. */
  admitting: "admitting",
  active: "active",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
} as const;
export type RunStage = (typeof RunStage)[keyof typeof RunStage];

export interface RunRecord {
  readonly runId: string;
  /** Sequence of its request in the stream RUNS. */
  readonly requestSequence: number;
  readonly stage: RunStage;
  readonly config: RunConfig;
  /** The resolved run file as JSON, as it was accepted. */
  readonly configJson: string;
  /** Last committed version; undefined before version 0. */
  readonly version: number | undefined;
  /** Folder of that version's state, relative to the state folder; empty before version 0. */
  readonly stateFolder: string;
  readonly stateDigest: string;
  /** First position of EPISODES that the run still needs. */
  readonly nextSequence: number;
  /** Epoch of the owner that read this row. */
  readonly epoch: number;
  /** Tenures in a row, this one included, that brought no progress and whose process did not live to their end. */
  readonly tenures: number;
  readonly isCancelRequested: boolean;
  readonly isPauseRequested: boolean;
  /** Why it ended; empty while it has not. */
  readonly endReason: string;
}
