/** What the views of this service ask of its store, and what they get. */

import type { RolloutRecord } from "./rollout-record.ts";
import type { RunPhase } from "./run-phase.ts";
import type { RunProgress } from "./run-progress.ts";
import type { RunTroubles } from "./run-troubles.ts";
import type { StepFigures } from "./series.ts";

/** Figures by name; a figure that is no finite number is null. */
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
  /** Empty = nothing. */
  readonly waitingFor: string;
  /** Whose turn it is: a service, `database`, `bus` or `you`; empty = nothing is waited for. */
  readonly waitingOwner: string;
  readonly waitingSinceMs: number | null;
  readonly progress: RunProgress | null;
  /** Null = nothing went wrong in the rollouts that were gathered last. */
  readonly troubles: RunTroubles | null;
  readonly endedAtMs: number | null;
  readonly endReason: string;
  readonly checkpoint: string;
  /** Rollouts that left the bus before the tracer had read them: trained, and not to be shown. */
  readonly unreadRollouts: number;
}

/** One point of a run's small curve; null where the step had no such figure. */
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

/** What a list of rollouts may ask for; absent = any. */
export interface RolloutFilter {
  readonly split?: string | undefined;
  readonly step?: number | undefined;
  readonly task?: number | undefined;
  readonly outcome?: string | undefined;
  readonly minReward?: number | undefined;
  readonly maxReward?: number | undefined;
  /** Only rollouts that were stored before the one with this id: the next page. */
  readonly beforeId?: number | undefined;
  readonly limit: number;
}

/** A rollout as lists show it. */
export interface RolloutRow {
  readonly id: number;
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
  /** Empty where it was not traced. */
  readonly traceId: string;
  readonly storedAtMs: number;
  /** Null where it was not trained, or what training did is not known. */
  readonly advantage: number | null;
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

/** Reads what was stored. Every method throws the errors of @hone/storage. */
export interface TracerStore {
  /** Newest first, each with its latest steps. */
  readRuns(): Promise<ReadonlyArray<RunSummary & { readonly curve: readonly CurvePoint[] }>>;
  /** Newest first. */
  readRefusals(): Promise<readonly Refusal[]>;
  readRun(runId: string): Promise<
    | (RunSummary & {
        readonly configJson: string | null;
        /** Rollouts that retention removed. */
        readonly removedRollouts: number;
        readonly evaluations: readonly Evaluation[];
      })
    | undefined
  >;
  /** The completed steps behind `afterStep`, in order; `hasMore` when the answer stops short of the last. */
  readSteps(
    runId: string,
    afterStep: number,
  ): Promise<{ readonly steps: readonly StepFigures[]; readonly hasMore: boolean }>;
  /** Newest first, with the filter's `beforeId` of the next page, if there is one. */
  readRollouts(
    runId: string,
    filter: RolloutFilter,
  ): Promise<{ readonly rollouts: readonly RolloutRow[]; readonly nextBeforeId: number | null }>;
  /** By split and outcome. */
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
  /** Pieces of a trace in the order in which they came. */
  readPieces(traceId: string): Promise<readonly Uint8Array[]>;
  /** Revision of each run: a run whose revision moved has changed. */
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

/** What RUN_STATE says of a run. */
export interface PublishedState {
  readonly runId: string;
  /** Of the key in the bucket. */
  readonly revision: number;
  readonly phase: RunPhase;
  readonly troubles: RunTroubles | null;
  readonly version: number;
  readonly totalSteps: number;
  /** Empty = nothing. */
  readonly waitingFor: string;
  /** Whose turn it is: a service, `database`, `bus` or `you`; empty = nothing is waited for. */
  readonly waitingOwner: string;
  readonly waitingSinceMs: number | null;
}
