/** The port to a run's rows in the database: what its steps trained, committed and evaluated. */

import type { Slot } from "@hone/core";
import type { CreditedRollout, TaskVisit } from "@hone/rl";
import type { LeftOutRollout, RunIdentity } from "../record/chained-parts.ts";
import type { PolicyTokens } from "../record/rollout-tokens.ts";
import type { EvaluationMode } from "../report/run-event.ts";
import type { GatheredTroubles } from "../report/run-status.ts";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import type { Recovery, RunRecord } from "../run/run-record.ts";
import type { StateFiles } from "../state/state-files.ts";

/** What the ledger knows of a rollout that was trained; the rollout itself is in the stream. */
export interface TrainedRollout extends Omit<CreditedRollout, "rollout"> {
  readonly slot: Slot;
  /** The role whose part of the rollout it is; undefined = the whole, or the part of no role that the run names. */
  readonly role: string | undefined;
}

/** The result of a task in a step, and where the next step begins to look for tasks. */
export interface TaskVisitRow extends TaskVisit {
  readonly step: number;
  /** Index within the step's batch. */
  readonly task: number;
  /** The same for all tasks of a step. */
  readonly nextCursor: number;
}

/** Names a group of an asynchronous run: the step that asked for it, and its index among the groups that this step asked for. */
export interface TakenGroup {
  readonly step: number;
  readonly task: number;
}

/** A group whose rollouts are all there. */
export interface CompleteGroup extends TakenGroup {
  /** Position in the stream of its last rollout. */
  readonly completeAt: number;
}

/** A group of an asynchronous run. */
export interface GroupRow extends TakenGroup {
  /** Position of its task in the order of the training split. */
  readonly cursor: number;
  /** The step that trained it; undefined while none has. */
  readonly trainedBy: number | undefined;
  readonly isGivenUp: boolean;
}

/** What an asynchronous run asks for before a step. */
export interface AskedGroups {
  readonly runId: string;
  readonly epoch: number;
  /** The step that asks. */
  readonly step: number;
  readonly asked: readonly (TakenGroup & Pick<GroupRow, "cursor">)[];
  /** Groups in whose place others are asked for. */
  readonly givenUp: readonly TakenGroup[];
  /** Position in the training split from which tasks have not been asked for yet. */
  readonly nextCursor: number;
}

/** The groups of an asynchronous run that its next owner needs. */
export interface KeptGroups {
  /** Those that are open, and those that were asked for or trained after the last whole state. */
  readonly groups: readonly GroupRow[];
  readonly nextCursor: number;
  /** The largest position at which a group that was trained was complete; 0 = none was. */
  readonly decidedAt: number;
}

/** What one transaction makes durable. */
export interface Commit {
  readonly runId: string;
  readonly epoch: number;
  readonly version: number;
  /** Whether the run begins with this version; otherwise it follows the version before it. */
  readonly isFirst: boolean;
  /** Folder of the state, relative to the state folder. */
  readonly stateFolder: string;
  readonly stateDigest: string;
  readonly stateFiles: StateFiles;
  /** Whether the state has the optimizer, so that a restart may go on from it. */
  readonly isWhole: boolean;
  /** {@link TrainingEngine.arithmetic} of the engine that made it. */
  readonly arithmetic: string;
  /** One row of the ledger each. */
  readonly trained: readonly CreditedRollout<ScoredRollout>[];
  /** Rollouts that the step played and did not train, in order of their slots. */
  readonly leftOut: readonly LeftOutRollout[];
  /** By what the row of the chain names the run. */
  readonly identity: RunIdentity;
  /** Digest of the weights that the step began with; empty where the run begins with this version. */
  readonly weightsBefore: string;
  /** What its tokens added to the gradient of each policy that learnt; empty = it is not recorded. */
  readonly tokens: readonly PolicyTokens[];
  readonly metrics: Readonly<Record<string, number>>;
  /** Failures in the step's rollouts; absent = nothing went wrong. */
  readonly troubles?: GatheredTroubles | undefined;
  /** Present if the tasks of later steps depend on them. */
  readonly visits?: readonly TaskVisitRow[];
  /** The groups that the step took, in the order in which they were complete; present if the run is asynchronous. */
  readonly taken?: readonly CompleteGroup[];
  /** First position of the stream that is still needed. */
  readonly nextSequence: number;
}

/** A finished evaluation. */
export interface EvaluationRecord {
  readonly version: number;
  readonly mode: EvaluationMode;
  readonly episodes: number;
  readonly metrics: Readonly<Record<string, number>>;
  /** Failures in its rollouts; absent = nothing went wrong. */
  readonly troubles?: GatheredTroubles | undefined;
}

/** What is stored of a committed step for those who follow the run. */
export interface StepRecord {
  readonly metrics: Readonly<Record<string, number>>;
  /** Failures in its rollouts; absent = nothing went wrong. */
  readonly troubles?: GatheredTroubles | undefined;
}

/** What people asked of a run. */
export interface ControlRequests {
  readonly isCancelRequested: boolean;
  readonly isPauseRequested: boolean;
}

/** How a run ended. */
export type RunEnding = "completed" | "failed" | "cancelled";

/** The run's rows. Every write names the owner's epoch and changes nothing when another epoch is valid. */
export interface RunLedger {
  /** Renews the lease. @returns what people ask of the run; undefined when this epoch no longer owns it. */
  renew(runId: string, epoch: number, leaseMs: number): Promise<ControlRequests | undefined>;
  /** The current row of the run; undefined when there is none. */
  load(runId: string): Promise<RunRecord | undefined>;
  /** One transaction. @returns false when epoch or version no longer hold: nothing was changed. */
  commit(commit: Commit): Promise<boolean>;
  /**
   * Records a state from which a restart goes on: one of the current version, whose state folder and digest it replaces, or
   * one within the warm start.
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
  /** Stores the groups that a step asks for and gives up. @returns false when epoch or version no longer hold. */
  askGroups(groups: AskedGroups): Promise<boolean>;
  /** @param since version of the last whole state; the groups that later steps trained are included. */
  groups(runId: string, since: number): Promise<KeptGroups>;
  /** The rollouts on which a version was trained, in order of their slots. */
  trained(runId: string, version: number): Promise<TrainedRollout[]>;
  /** What is stored of a committed step; undefined when there is none. */
  step(runId: string, version: number): Promise<StepRecord | undefined>;
  /** SHA-256 of the weights of a committed version; undefined when there is none. */
  stateDigest(runId: string, version: number): Promise<string | undefined>;
  /** @returns false when the epoch no longer holds. */
  end(runId: string, epoch: number, ending: RunEnding, reason: string): Promise<boolean>;
}
