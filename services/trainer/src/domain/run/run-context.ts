/** What the parts of a run's loop share: the run, its engine, and its ways to the outside. */

import type { Logger } from "@hone/telemetry";
import type { RunReporter } from "../report/run-reporter.ts";
import type { JobQueue } from "../rollouts/jobs.ts";
import type { RolloutGatherer } from "../rollouts/rollout-gatherer.ts";
import type { RolloutInbox } from "../rollouts/rollout-inbox.ts";
import type { ScoredRollouts } from "../rollouts/scored-rollout.ts";
import type { SplitTasks } from "../rollouts/split-tasks.ts";
import type { RunFolders } from "../state/run-folders.ts";
import type { GroupJudges } from "../step/group-judges.ts";
import type { RunLedger } from "../step/ledger.ts";
import type { TrainingEngine } from "../step/training-engine.ts";
import type { Recovery, RunRecord } from "./run-record.ts";

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

export interface RunContext {
  readonly run: RunRecord;
  readonly engine: TrainingEngine;
  readonly ledger: RunLedger;
  readonly jobs: JobQueue;
  readonly rollouts: ScoredRollouts;
  readonly folders: RunFolders;
  readonly reporter: RunReporter;
  readonly inbox: RolloutInbox;
  readonly gatherer: RolloutGatherer;
  readonly tasks: SplitTasks;
  readonly groupJudges: GroupJudges;
  readonly logger: Logger;
  readonly progress: RunProgress;
  /** Time between two saved states of a warm start. */
  readonly warmStateMs: number;
  readonly signal: AbortSignal;
}
