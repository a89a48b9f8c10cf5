/** The port to the table of runs: which runs there are, who owns them, and what became of requests for them. */

import type { RunRecord, RunStage } from "./run-record.ts";

/** A run as its request describes it. */
export interface NewRun extends Pick<RunRecord, "runId" | "requestSequence" | "configJson"> {
  readonly name: string;
}

/** What became of a new run. Where it was not inserted, nothing was changed. */
export type Insertion =
  | { readonly kind: "inserted" }
  /** The request was inserted before. */
  | { readonly kind: "known" }
  /** Another run of the same name is unfinished. */
  | { readonly kind: "under_way"; readonly runId: string; readonly isAdmitted: boolean };

/** What became of the request to resume a failed run. */
export type Resumption =
  | { readonly kind: "resumed"; readonly run: RunRecord }
  /** The run has not failed, and is unchanged. */
  | { readonly kind: "not_failed"; readonly stage: RunStage }
  /** Another run of the same name is unfinished. */
  | { readonly kind: "name_taken"; readonly runId: string };

/** A run that is over, and which of its episodes may be needed again. */
export interface EndedRun {
  readonly runId: string;
  /** First position of the stream that its resumption would need. */
  readonly neededFrom: number;
}

/** A row that was claimed but cannot be read as a run, so nobody can go on with it. */
export interface BrokenRun {
  readonly runId: string;
  readonly epoch: number;
  readonly version: number;
  readonly reason: string;
}

/** Which runs there are, and who owns them. */
export interface RunRegistry {
  /** Inserts one run at a time for each name, so that the second of two runs of one name is not inserted. */
  insert(run: NewRun): Promise<Insertion>;
  /**
   * Claims every unfinished run whose lease is over, or that an earlier process of this owner held. Runs with which several
   * processes in a row died are claimed one at a time.
   * @param heldHere runs that this process works on already.
   * @param onBroken called with claimed rows that cannot be read as a run: the caller ends them.
   */
  claim(
    owner: string,
    leaseMs: number,
    heldHere: readonly string[],
    onBroken: (run: BrokenRun) => void,
  ): Promise<RunRecord[]>;
  /** Ends the admission and lets the run start. @returns false when the epoch is no longer valid. */
  activate(runId: string, epoch: number): Promise<boolean>;
  /** Removes a run that was refused. */
  remove(runId: string, epoch: number): Promise<void>;
  /** Records that the process was still alive when its tenure ended, however that happened. */
  recordSurvival(runId: string, epoch: number): Promise<void>;
  /** Ends the lease now, so that another process may take the run. */
  release(runId: string, epoch: number): Promise<void>;
  /** Records what people ask of a run. @returns the run; undefined when there is no unfinished run of this id. */
  requestControl(runId: string, verb: "cancel" | "pause" | "resume"): Promise<RunRecord | undefined>;
  load(runId: string): Promise<RunRecord | undefined>;
  /**
   * Lets a failed run continue from its last committed version. Rollouts that were not trained on are made again.
   * @returns what became of the request; undefined when there is no such run.
   */
  resume(runId: string): Promise<Resumption | undefined>;
  /** Those of the given runs that have ended. A run that the database does not know is left out. */
  overAmong(runIds: readonly string[]): Promise<EndedRun[]>;
}
