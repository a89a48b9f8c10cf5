/** What the parts of a run's loop share: the run, its engine, and its ways to the outside. */

import type { Logger } from "@hone/telemetry";
import type { GroupJudges, JobQueue, RunLedger, ScoredRollouts } from "./ports.ts";
import type { RolloutGatherer } from "./rollout-gatherer.ts";
import type { RolloutInbox } from "./rollout-inbox.ts";
import type { RunFolders } from "./run-folders.ts";
import type { RunRecord } from "./run-record.ts";
import type { RunReporter } from "./run-reporter.ts";
import type { SplitTasks } from "./split-tasks.ts";
import type { TrainingEngine } from "./training-engine.ts";

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
  /** Last committed version; undefined before version 0. The commit alone moves it. */
  readonly progress: { version: number | undefined };
  readonly signal: AbortSignal;
}
