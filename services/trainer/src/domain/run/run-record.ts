/** A run as the database knows it. */

import type { RunConfig } from "@hone/config";
import type { CommittedState } from "../state/check-state.ts";
import type { StateFiles } from "../state/state-files.ts";

/** The stage of a run that lasts from one process to the next; what the run does now is in its published state. */
export const RunStage = {
  /** The request was read, and not all services have agreed to it yet. */
  admitting: "admitting",
  active: "active",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
} as const;
export type RunStage = (typeof RunStage)[keyof typeof RunStage];

/** A state with the optimizer, from which training goes on after a restart. */
export interface Recovery extends CommittedState {
  /** Relative to the state folder. */
  readonly folder: string;
  /** The steps after this version are replayed; undefined = the state was saved within the warm start. */
  readonly version: number | undefined;
  /** The updates of the warm start that the state contains, where it was saved within the warm start. */
  readonly warmUpdates: number;
}

export interface RunRecord {
  readonly runId: string;
  /** Sequence of the run's request in the stream RUNS. */
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
  /** The arithmetic of the engine that made that version; empty where it was not recorded. */
  readonly arithmetic: string;
  /** Every file of that state; empty where the commit is older than the record of files. */
  readonly stateFiles: StateFiles;
  /** The newest state with the optimizer; undefined before the first. It may be older than the last version. */
  readonly recovery: Recovery | undefined;
  /** First position of EPISODES that the run still needs: the steps after `recovery` are replayed from there. */
  readonly nextSequence: number;
  /** Epoch of the owner that read this row. */
  readonly epoch: number;
  /** Tenures in a row, this one included, that made no progress and whose process died before they ended. */
  readonly tenures: number;
  /** How many times the run was resumed after a failure. */
  readonly resumptions: number;
  readonly isCancelRequested: boolean;
  readonly isPauseRequested: boolean;
  /** Why the run ended; empty while it has not. */
  readonly endReason: string;
}

/** How far a run has come in this tenure. */
export interface RunProgress {
  /** Last committed version; undefined before version 0. Only a commit changes it. */
  version: number | undefined;
  /** Digest of the weights of `version`; empty before the first. */
  weightsDigest: string;
  /** Version of the engine's weights: behind `version` while steps are replayed. */
  trained: number | undefined;
  /** The state from which a restart goes on, as the database has it. */
  recovery: Recovery | undefined;
  /** First position of the stream that a restart would need. */
  neededFrom: number;
  /** Bytes of the last evaluation's episodes in the stream; undefined before the first evaluation of this tenure. */
  evaluationBytes: number | undefined;
}
