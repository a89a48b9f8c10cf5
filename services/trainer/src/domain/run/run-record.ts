/** A run as the database knows it. */

import type { RunConfig } from "@hone/config";
import type { CommittedState } from "../state/check-state.ts";
import type { StateFiles } from "../state/state-files.ts";

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

/** A state with the optimizer: training goes on from it after a restart. */
export interface Recovery extends CommittedState {
  /** Relative to the state folder. */
  readonly folder: string;
  /** Steps after it are replayed; undefined = it was saved within the warm start. */
  readonly version: number | undefined;
  /** Updates of the warm start that it holds, where it was saved within that. */
  readonly warmUpdates: number;
}

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
  /** Of the engine that made that version; empty where it was not noted. */
  readonly arithmetic: string;
  /** Every file of that state; empty where it was committed before files were recorded. */
  readonly stateFiles: StateFiles;
  /** The newest state with the optimizer; undefined before the first. It may be older than the last version. */
  readonly recovery: Recovery | undefined;
  /** First position of EPISODES that the run still needs: those of the steps after `recovery` are replayed. */
  readonly nextSequence: number;
  /** Epoch of the owner that read this row. */
  readonly epoch: number;
  /** Tenures in a row, this one included, that brought no progress and whose process did not live to their end. */
  readonly tenures: number;
  /** How often it was resumed after a failure. */
  readonly resumptions: number;
  readonly isCancelRequested: boolean;
  readonly isPauseRequested: boolean;
  /** Why it ended; empty while it has not. */
  readonly endReason: string;
}

/** How far a run is in this tenure. */
export interface RunProgress {
  /** Last committed version; undefined before version 0. The commit alone moves it. */
  version: number | undefined;
  /** Version of the engine's weights: behind `version` while steps are replayed. */
  trained: number | undefined;
  /** What the database says a restart goes on from. */
  recovery: Recovery | undefined;
  /** First position of the stream that a restart would need. */
  neededFrom: number;
  /** Room that the episodes of the last evaluation took in the stream; undefined before the first in this tenure. */
  evaluationBytes: number | undefined;
}
