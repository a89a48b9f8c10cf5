/** The store that the views of this service read, and the types of what they get from it. */

import type { ExportedNote, NewNote, Note } from "./people/note.ts";
import type { RolloutRecord } from "./rollout-record.ts";
import type { RunPhase } from "./run-phase.ts";
import type { RunProgress } from "./run-progress.ts";
import type { RunTroubles } from "./run-troubles.ts";
import type { TextPlace } from "./search/rollout-texts.ts";
import type { StepFigures } from "./series.ts";

/** Numbers by name; one that is not finite is null. */
export type Figures = Readonly<Record<string, number | null>>;

/** A run as lists show it. Times are Unix milliseconds. */
export interface RunSummary {
  readonly runId: string;
  /** Null when its acceptance was not seen. */
  readonly acceptedAtMs: number | null;
  readonly phase: string;
  readonly step: number;
  readonly totalSteps: number;
  readonly version: number;
  /** What the run waits for; empty = nothing. */
  readonly waitingFor: string;
  /** Who must act for the run to continue: a service, `database`, `bus` or `you`; empty = it waits for nothing. */
  readonly waitingOwner: string;
  readonly waitingSinceMs: number | null;
  readonly progress: RunProgress | null;
  /** Null = nothing went wrong in the most recent rollouts. */
  readonly troubles: RunTroubles | null;
  readonly endedAtMs: number | null;
  readonly endReason: string;
  readonly checkpoint: string;
  /** Number of rollouts that were removed from the bus before the tracer had read them; they were trained but cannot be shown. */
  readonly unreadRollouts: number;
}

/** One point of a run's small curve; null where the step had no such metric. */
export interface CurvePoint {
  readonly step: number;
  readonly success: number | null;
  readonly reward: number | null;
}

export interface Evaluation {
  readonly version: number;
  readonly mode: string;
  readonly episodes: number;
  readonly timeMs: number;
  readonly metrics: Figures;
}

/** A request that never became a run. */
export interface Refusal {
  readonly requestSequence: number;
  readonly timeMs: number;
  readonly problems: ReadonlyArray<{ readonly key: string; readonly message: string }>;
}

/** The columns by which lists of rollouts can be sorted. */
export const ROLLOUT_SORTS = [
  "stored",
  "rollout",
  "outcome",
  "reward",
  "advantage",
  "turns",
  "tokens",
  "time",
  "task",
] as const;
export type RolloutSort = (typeof ROLLOUT_SORTS)[number];

/** The filter of a list of rollouts; absent = any. */
export interface RolloutFilter {
  readonly split?: string | undefined;
  readonly step?: number | undefined;
  readonly task?: number | undefined;
  readonly outcome?: string | undefined;
  readonly minReward?: number | undefined;
  readonly maxReward?: number | undefined;
  readonly taskId?: string | undefined;
  /** A query in the form of `searchQueryOf`. */
  readonly words?: string | undefined;
  /** Where these words must stand. */
  readonly place?: TextPlace | undefined;
  /** Only rollouts about which somebody wrote a note. */
  readonly isNoted?: boolean | undefined;
  /** @default "stored", the newest first */
  readonly sort?: RolloutSort | undefined;
  readonly isAscending?: boolean | undefined;
  /** How many rollouts to leave out, for the next page of a list that is sorted by another column. */
  readonly offset?: number | undefined;
  /** Only rollouts that were stored before the one with this id, for the next page. */
  readonly beforeId?: number | undefined;
  readonly limit: number;
}

/** A rollout as lists show it. */
export interface RolloutRow {
  readonly id: number;
  readonly runId: string;
  /** `<split>.<step>.<task>.<index>` */
  readonly slot: string;
  readonly split: string;
  readonly step: number;
  readonly task: number;
  readonly index: number;
  readonly attempt: number;
  readonly outcome: string;
  readonly reason: string;
  readonly reward: number | null;
  readonly success: number | null;
  readonly turns: number;
  readonly sampledTokens: number;
  readonly totalTokens: number;
  readonly durationMs: number;
  readonly taskId: string;
  /** Empty where the rollout was not traced. */
  readonly traceId: string;
  readonly storedAtMs: number;
  /** Null where the rollout was not trained or its train span did not arrive. */
  readonly advantage: number | null;
  /** Number of notes that people wrote about it. */
  readonly notes: number;
}

/** One page of a list. */
export interface RolloutPage {
  /** With their bytes where words were searched, for the places where these are. */
  readonly rollouts: ReadonlyArray<RolloutRow & { readonly scored: Uint8Array | null }>;
  /** The `beforeId` of the next page; null = there is none, or the list is sorted by another column. */
  readonly nextBeforeId: number | null;
  /** The `offset` of the next page; null = there is none, or the list has the order of storing. */
  readonly nextOffset: number | null;
}

/** A rollout with its bytes and the others of its group. */
export interface RolloutDetail extends RolloutRow {
  readonly figures: Figures | null;
  /** Whether retention removed spans of its trace. */
  readonly spansRemoved: boolean;
  /** Encoded hone.rollout.v1.ScoredEpisode. */
  readonly scored: Uint8Array;
  readonly group: ReadonlyArray<Pick<RolloutRow, "slot" | "index" | "reward" | "outcome" | "advantage">>;
}

/** Spans of rollouts, as far as they are stored. */
export interface StepSpans {
  readonly pieces: readonly Uint8Array[];
  /** Number of rollouts with spans among the pieces. */
  readonly drawn: number;
  /** Number of all rollouts. */
  readonly total: number;
}

/** A task that several runs played. */
export interface CommonTask {
  /** The first 200 characters of its id. */
  readonly taskId: string;
  /** Number of rollouts and mean reward by run; null = none could be scored. */
  readonly byRun: Readonly<Record<string, { readonly rollouts: number; readonly reward: number | null }>>;
}

/** A rollout of a task that is compared. */
export type TaskRollout = Pick<RolloutRow, "runId" | "slot" | "split" | "step" | "outcome" | "reward">;

/** What became of the tokens that a step's rollouts sampled. */
export interface StepTokens {
  readonly step: number;
  readonly generated: number;
  /** Dropped, as they had grown too old. */
  readonly stale: number;
  /** Left out, as something outside the agent failed or they were not needed. */
  readonly leftOut: number;
  /** In groups that give no gradient. */
  readonly flat: number;
}

/** Reads the store. Every method throws the errors of @hone/storage. */
export interface TracerStore {
  /** Newest first, each with the curve of its latest steps. */
  readRuns(): Promise<ReadonlyArray<RunSummary & { readonly curve: readonly CurvePoint[] }>>;
  /** Newest first. */
  readRefusals(): Promise<readonly Refusal[]>;
  readRun(runId: string): Promise<
    | (RunSummary & {
        readonly configJson: string | null;
        /** Number of rollouts that retention removed. */
        readonly removedRollouts: number;
        readonly evaluations: readonly Evaluation[];
      })
    | undefined
  >;
  /** The completed steps after `afterStep`, in order; `hasMore` says whether there are more than the answer holds. */
  readSteps(
    runId: string,
    afterStep: number,
  ): Promise<{ readonly steps: readonly StepFigures[]; readonly hasMore: boolean }>;
  readStep(runId: string, step: number): Promise<StepFigures | undefined>;
  /** The spans of the rollouts that may have been under way in a step. */
  readStepSpans(runId: string, step: number, beganAtMs: number): Promise<StepSpans>;
  /** One page of a run's rollouts, or of all rollouts. */
  readRollouts(runId: string | undefined, filter: RolloutFilter): Promise<RolloutPage>;
  /** Numbers of rollouts by split and outcome. */
  readRolloutCounts(runId: string): Promise<
    ReadonlyArray<{
      readonly split: string;
      readonly outcome: string;
      readonly count: number;
      readonly lastStep: number;
    }>
  >;
  readRollout(runId: string, slot: string): Promise<RolloutDetail | undefined>;
  /** Whether retention removed rollouts of a step. */
  areRolloutsRemoved(runId: string, split: string, step: number): Promise<boolean>;
  /** Whether retention ever removed spans. */
  areSpansRemoved(): Promise<boolean>;
  /** The pieces of a trace in the order in which they came. */
  readPieces(traceId: string): Promise<readonly Uint8Array[]>;
  readNotes(runId: string, slot: string): Promise<readonly Note[]>;
  /** @returns undefined where the rollout has as many notes as it may have. */
  addNote(note: NewNote): Promise<Note | undefined>;
  /** @returns whether there was such a note. */
  removeNote(id: number): Promise<boolean>;
  /** The notes after one, oldest first. @param runId undefined = of all runs. */
  exportNotes(runId: string | undefined, afterId: number, limit: number): Promise<readonly ExportedNote[]>;
  readCommonTasks(runIds: readonly string[], split: string): Promise<readonly CommonTask[]>;
  readTaskRollouts(runIds: readonly string[], taskId: string): Promise<readonly TaskRollout[]>;
  readCost(runId: string): Promise<readonly StepTokens[]>;
  /** The revision of each run; a run whose revision has grown has changed. */
  readRevisions(): Promise<ReadonlyMap<string, number>>;
}

/** A scored rollout to be stored. */
export interface StoredRollout {
  readonly record: RolloutRecord;
  /** Empty where it was not traced. */
  readonly traceId: string;
  /** Encoded hone.rollout.v1.ScoredEpisode. */
  readonly scored: Uint8Array;
}

/** The state of a run in the bucket RUN_STATE. */
export interface PublishedState {
  readonly runId: string;
  /** Revision of the run's key in the bucket. */
  readonly revision: number;
  readonly phase: RunPhase;
  readonly troubles: RunTroubles | null;
  readonly version: number;
  readonly totalSteps: number;
  /** What the run waits for; empty = nothing. */
  readonly waitingFor: string;
  /** Who must act for the run to continue: a service, `database`, `bus` or `you`; empty = it waits for nothing. */
  readonly waitingOwner: string;
  readonly waitingSinceMs: number | null;
}
