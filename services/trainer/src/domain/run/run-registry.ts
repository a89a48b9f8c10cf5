/** Which runs there are, who owns them, and what became of requests for them. */

import type { RunRecord, RunStage } from "./run-record.ts";

/** A run as its request names it. */
export interface NewRun extends Pick<RunRecord, "runId" | "requestSequence" | "configJson"> {
  readonly name: string;
}

/** What became of a new run: where it was not inserted, nothing was changed. */
export type Insertion =
  | { readonly kind: "inserted" }
  /** The request was inserted before. */
  | { readonly kind: "known" }
  /** Another run of the name is unfinished. */
  | { readonly kind: "under_way"; readonly runId: string; readonly isAdmitted: boolean };

/** What became of the wish to resume a failed run. */
export type Resumption =
  | { readonly kind: "resumed"; readonly run: RunRecord }
  /** It has not failed, and is as it was. */
  | { readonly kind: "not_failed"; readonly stage: RunStage }
  /** Another run of its name is unfinished. */
  | { readonly kind: "name_taken"; readonly runId: string };

/** A run that is over, and what of its episodes may be needed again. */
export interface EndedRun {
  readonly runId: string;
  /** First position of the stream that its resumption would need. */
  readonly neededFrom: number;
}

/** A row that was claimed and holds no run that anybody could go on with. */
export interface BrokenRun {
  readonly runId: string;
  readonly epoch: number;
  readonly version: number;
  readonly reason: string;
}

/** Which runs there are, and who owns them. */
export interface RunRegistry {
  /** One at a time for each name, so that of two runs of one name the second is not inserted. */
  insert(run: NewRun): Promise<Insertion>;
  /**
   * Takes every unfinished run whose lease is over, or that an earlier process of this owner held; of those with which
   * process after process died, one at a time.
   * @param heldHere runs that this process works on already.
   * @param onBroken told of rows that were claimed and hold no run: they are to be ended.
   */
  claim(
    owner: string,
    leaseMs: number,
    heldHere: readonly string[],
    onBroken: (run: BrokenRun) => void,
  ): Promise<RunRecord[]>;
  /** Admission is over, the run may go. @returns false when the epoch no longer holds. */
  activate(runId: string, epoch: number): Promise<boolean>;
  /** Removes a run that was refused. */
  remove(runId: string, epoch: number): Promise<void>;
  /** Notes that the process outlived its tenure, however that ended. */
  outlive(runId: string, epoch: number): Promise<void>;
  /** Ends the lease now, so that another process may take the run. */
  release(runId: string, epoch: number): Promise<void>;
  /** Notes what people want. @returns the run; undefined when there is none that is unfinished. */
  wish(runId: string, wish: "cancel" | "pause" | "resume"): Promise<RunRecord | undefined>;
  load(runId: string): Promise<RunRecord | undefined>;
  /**
   * Lets a failed run go on from its last committed version. Its rollouts that were not trained are made anew.
   * @returns what became of it; undefined when there is no such run.
   */
  resume(runId: string): Promise<Resumption | undefined>;
  /** Which of these runs have ended. One that the database does not know is none of them. */
  overAmong(runIds: readonly string[]): Promise<EndedRun[]>;
}
