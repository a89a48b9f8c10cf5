/**
 * What the run needs from outside, as narrow interfaces: tasks, jobs, scored rollouts, the ledger, the published state.
 *
 * A failure that passes by itself (a bus, a database or a service that is away) is thrown as a RetryableError; the
 * loop waits for it and says so in the run's status. Everything else ends the attempt at the run.
 */

import type { Endpoint, GroupJudgeConfig } from "@hone/config";
import type { Slot } from "@hone/core";
import type { CreditedRollout, Score, TaskVisit } from "@hone/rl";
import type { Context } from "@hone/telemetry";
import type { RunEvent } from "./report/run-event.ts";
import type { RunStatus } from "./report/run-status.ts";
import type { GatheredTroubles } from "./report/troubles.ts";
import type { PipelineView } from "./rollouts/find-holdup.ts";
import type { ScoredRollout } from "./rollouts/scored-rollout.ts";
import type { Recovery, RunRecord, RunStage } from "./run/run-record.ts";
import type { EpisodeRoom } from "./state/episode-room.ts";
import type { StateFiles } from "./state/state-files.ts";

/** One dataset row, or an environment with its seed; the trainer passes it on unread. */
export interface Task {
  readonly id: string;
  readonly environment: string;
  readonly environmentSeed: bigint;
  readonly environmentConfigJson: string;
  readonly rowJson: string;
}

/** Consecutive tasks of one split. */
export interface TaskRequest {
  /** The split's part of the run file as JSON. */
  readonly sourceJson: string;
  readonly runSeed: number;
  readonly cursor: number;
  readonly count: number;
  readonly isShuffled: boolean;
}

export interface TaskSource {
  /** @returns the tasks and how many distinct ones the source has. */
  batch(request: TaskRequest, signal: AbortSignal): Promise<{ tasks: Task[]; size: number }>;
}

/** Parameters of the sampling distribution of a job. */
export interface JobSampling {
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP?: number;
  readonly repetitionPenalty?: number;
  readonly maxNewTokens: number;
}

/** What varies from job to job of one run. */
export interface Job {
  readonly slot: Slot;
  readonly task: Task;
  /** Position of the task in its split's order. */
  readonly cursor: number;
  readonly sampling: JobSampling;
  /** Scripted policy that takes the model's place. */
  readonly scriptedPolicy?: string;
  /** A model outside that takes its place. */
  readonly endpoint?: Endpoint;
  readonly lowestVersion: number;
  readonly highestVersion: number;
}

export interface JobQueue {
  /**
   * Stores a job.
   * @returns false when the queue saw a job of this slot lately, and of this repetition: nothing was stored.
   * @throws {RetryableError} when the bus is away, or at once when the queue holds as many jobs of the run as it takes.
   */
  publish(run: RunRecord, job: Job, options: PublishJobOptions): Promise<boolean>;
  /** Jobs of all runs that nobody has taken. */
  waitingJobs(): Promise<number>;
  /** Runs of which a job is stored. */
  runs(): Promise<string[]>;
  /** Drops the run's jobs that nobody has taken. */
  purge(runId: string): Promise<void>;
}

export interface PublishJobOptions {
  /** 0 at first; each higher one makes a queue take a slot that it has seen. */
  readonly repetition: number;
  readonly trace: Context;
  readonly signal: AbortSignal;
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

/** A complete group of scored rollouts. */
export interface GroupToCompare {
  readonly runId: string;
  /** Where the scored episodes stand in the stream. */
  readonly sequences: readonly number[];
  /** Those that compare. */
  readonly judges: readonly GroupJudgeConfig[];
}

export type GroupVerdict =
  /** Of each rollout, in the order asked for, the scores of all these judges. */
  | { readonly kind: "scored"; readonly scores: readonly (readonly Score[])[] }
  /** There is none to be had: why, for people. */
  | { readonly kind: "failed"; readonly reason: string };

export interface GroupJudges {
  /** @throws {RetryableError} when the judge is away. */
  compare(group: GroupToCompare, signal: AbortSignal): Promise<GroupVerdict>;
}

/** The way of rollouts from the job to the scored episode, seen from outside. */
export interface Pipeline {
  /** Settles within seconds. */
  look(runId: string, signal: AbortSignal): Promise<PipelineView>;
}

/** One row of the ledger: a rollout that was trained. */
export interface LedgerEntry extends CreditedRollout {
  readonly sequence: number;
}

/** What the ledger keeps of a trained rollout; the rollout itself is in the stream. */
export interface TrainedRollout extends Omit<CreditedRollout, "rollout"> {
  readonly slot: Slot;
}

/** How a task of a step went, and where the next step looks for tasks. */
export interface TaskVisitRow extends TaskVisit {
  readonly step: number;
  /** Index within the step's batch. */
  readonly task: number;
  /** The same for all tasks of a step. */
  readonly nextCursor: number;
}

/** What one transaction makes durable. */
export interface Commit {
  readonly runId: string;
  readonly epoch: number;
  readonly version: number;
  /** Folder of the state, relative to the state folder. */
  readonly stateFolder: string;
  readonly stateDigest: string;
  readonly stateFiles: StateFiles;
  /** Whether the state has the optimizer, so that a restart may go on from it. */
  readonly isWhole: boolean;
  /** {@link TrainingEngine.arithmetic} of the engine that made it. */
  readonly arithmetic: string;
  readonly entries: readonly LedgerEntry[];
  readonly metrics: Readonly<Record<string, number>>;
  /** Of its rollouts; absent = nothing went wrong. */
  readonly troubles?: GatheredTroubles | undefined;
  /** Of a run with a curriculum. */
  readonly visits?: readonly TaskVisitRow[];
  /** First position of the stream that is still needed. */
  readonly nextSequence: number;
}

/** A finished evaluation. */
export interface EvaluationRecord {
  readonly version: number;
  readonly mode: EvaluationMode;
  readonly episodes: number;
  readonly metrics: Readonly<Record<string, number>>;
  /** Of its rollouts; absent = nothing went wrong. */
  readonly troubles?: GatheredTroubles | undefined;
}

/** What is kept of a committed step for whoever follows the run. */
export interface StepRecord {
  readonly metrics: Readonly<Record<string, number>>;
  /** Of its rollouts; absent = nothing went wrong. */
  readonly troubles?: GatheredTroubles | undefined;
}

/** How an evaluation samples. */
export const EvaluationMode = {
  /** With the run's own sampling parameters. */
  sampled: "sampled",
  /** The most likely token each time. */
  greedy: "greedy",
} as const;
export type EvaluationMode = (typeof EvaluationMode)[keyof typeof EvaluationMode];

/** What people asked of a run. */
export interface RunWishes {
  readonly isCancelRequested: boolean;
  readonly isPauseRequested: boolean;
}

/** How a run ended. */
export type RunEnding = "completed" | "failed" | "cancelled";

/** A run as its request names it. */
export interface NewRun {
  readonly runId: string;
  readonly requestSequence: number;
  readonly name: string;
  readonly configJson: string;
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

/** The run's rows. Every write names the owner's epoch and changes nothing under another one. */
export interface RunLedger {
  /** Wishes of the run's people; undefined when this epoch owns the run no longer. Prolongs the lease. */
  renew(runId: string, epoch: number, leaseMs: number): Promise<RunWishes | undefined>;
  /** The run as it stands; undefined when there is none. */
  load(runId: string): Promise<RunRecord | undefined>;
  /** One transaction. @returns false when epoch or version no longer hold: nothing was changed. */
  commit(commit: Commit): Promise<boolean>;
  /**
   * Notes a state to go on from after a restart: of the present version, whose state folder and digest it becomes, or
   * within the warm start.
   * @returns false when epoch or version no longer hold.
   */
  recordRecovery(runId: string, epoch: number, recovery: Recovery, nextSequence: number): Promise<boolean>;
  /** @returns false when the epoch no longer holds. */
  recordEvaluation(
    runId: string,
    epoch: number,
    records: readonly EvaluationRecord[],
    nextSequence: number,
  ): Promise<boolean>;
  evaluations(runId: string, version: number): Promise<EvaluationRecord[]>;
  /** Visits of all committed steps, in order of step and task. */
  visits(runId: string): Promise<TaskVisitRow[]>;
  /** The rollouts that the training of a version was made of, in order of their slots. */
  trained(runId: string, version: number): Promise<TrainedRollout[]>;
  /** What is kept of a committed step; undefined when there is none. */
  step(runId: string, version: number): Promise<StepRecord | undefined>;
  /** SHA-256 of the weights of a committed version; undefined when there is none. */
  stateDigest(runId: string, version: number): Promise<string | undefined>;
  /** @returns false when the epoch no longer holds. */
  end(runId: string, epoch: number, ending: RunEnding, reason: string): Promise<boolean>;
}

/** The published state of a run. */
export interface RunStateBoard {
  /**
   * Moves the published state by compare-and-set.
   * @returns false when a higher epoch has written: this process owns the run no longer.
   */
  publish(status: RunStatus): Promise<boolean>;
}

export interface RunEvents {
  /** @param messageId the stream stores one event of an id, however often it is sent. */
  publish(runId: string, event: RunEvent, messageId?: string): Promise<void>;
}
