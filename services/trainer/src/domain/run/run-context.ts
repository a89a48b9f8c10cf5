/** What the parts of a run's loop share: the run, its engine, and its ways to the outside. */

import type { Logger } from "@hone/telemetry";
import type { GroupJudges } from "../credit/group-judges.ts";
import type { CriticEngine } from "../critic/critic-engine.ts";
import type { OpenGroups } from "../groups/open-groups.ts";
import type { Learner } from "../learners/learner.ts";
import type { EngineIdle } from "../report/engine-idle.ts";
import type { RunReporter } from "../report/run-reporter.ts";
import type { RolloutDeadlines } from "../rollouts/rollout-deadlines.ts";
import type { RolloutGatherer } from "../rollouts/rollout-gatherer.ts";
import type { RolloutInbox } from "../rollouts/rollout-inbox.ts";
import type { ScoredRollouts } from "../rollouts/scored-rollout.ts";
import type { SplitTasks } from "../rollouts/split-tasks.ts";
import type { RunFolders } from "../state/run-folders.ts";
import type { RunLedger } from "../step/ledger.ts";
import type { SupervisedBatches } from "../step/supervised-batches.ts";
import type { TrainingEngine } from "../step/training-engine.ts";
import type { Teachers } from "../teachers/teacher.ts";
import type { RunProgress, RunRecord } from "./run-record.ts";
import type { UserAlgorithms } from "./user-modules.ts";

/** All of it: for the loop, which hands it on. Everything below takes the members that it uses, by `Pick`. */
export interface RunContext {
  readonly run: RunRecord;
  readonly engine: TrainingEngine;
  /** Undefined where the run has no critic. */
  readonly critic: CriticEngine | undefined;
  /** The run's further policies that are trained, in the order of the run file. */
  readonly learners: readonly Learner[];
  readonly teachers: Teachers;
  readonly ledger: RunLedger;
  readonly rollouts: ScoredRollouts;
  readonly folders: RunFolders;
  readonly reporter: RunReporter;
  readonly engineIdle: EngineIdle;
  readonly inbox: RolloutInbox;
  readonly gatherer: RolloutGatherer;
  readonly deadlines: RolloutDeadlines;
  readonly tasks: SplitTasks;
  /** Undefined unless the run is asynchronous. */
  readonly openGroups: OpenGroups | undefined;
  readonly groupJudges: GroupJudges;
  readonly supervised: SupervisedBatches;
  /** What the run takes from modules of its user. */
  readonly own: UserAlgorithms;
  readonly logger: Logger;
  readonly progress: RunProgress;
  /** Time between two saved states of a warm start. */
  readonly warmStateMs: number;
  readonly signal: AbortSignal;
}
