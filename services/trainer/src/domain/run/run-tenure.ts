/**
 * One tenure: the time in which this process owns a run, from the claim to the run's end or to the next owner.
 *
 * T1: everything that is opened here (engine, reader, spans, timers) is closed here, whatever happens.
 * T2: the signal ends the tenure: the run is cancelled, another process owns it, or this process stops and another goes on.
 * T3: the end of a run is published before its row records it, so that after a crash in between it is published again.
 */

import { isAsynchronous, type RunConfig } from "@hone/config";
import { describeError, messageIdOf, retry, type Slot } from "@hone/core";
import { Quantization } from "@hone/rl";
import type { Logger } from "@hone/telemetry";
import type { GroupJudges } from "../credit/group-judges.ts";
import type { CriticEngine } from "../critic/critic-engine.ts";
import { FolderRefusedError, OwnershipLostError, RunCancelledError, UniformFailureError } from "../errors.ts";
import { OpenGroups } from "../groups/open-groups.ts";
import type { Learner } from "../learners/learner.ts";
import { EngineIdle, type ReplicaTimes } from "../report/engine-idle.ts";
import type { RunEvents } from "../report/run-event.ts";
import { observeQueues, observeRun } from "../report/run-metrics.ts";
import { RunReporter } from "../report/run-reporter.ts";
import type { RunStateBoard } from "../report/run-status.ts";
import { NO_WAIT, RunPhase, type RunStatus } from "../report/run-status.ts";
import { statusOf } from "../report/status-of.ts";
import { WaitOwner } from "../report/wait.ts";
import type { Pipeline } from "../rollouts/find-cause-of-wait.ts";
import type { JobQueue, TaskSource } from "../rollouts/jobs.ts";
import { RolloutDeadlines } from "../rollouts/rollout-deadlines.ts";
import { RolloutGatherer } from "../rollouts/rollout-gatherer.ts";
import { RolloutInbox } from "../rollouts/rollout-inbox.ts";
import { RolloutTraces } from "../rollouts/rollout-traces.ts";
import type { ScoredRollouts } from "../rollouts/scored-rollout.ts";
import { SplitTasks } from "../rollouts/split-tasks.ts";
import { lastCheckpoint } from "../state/checkpoints.ts";
import { RunFolders } from "../state/run-folders.ts";
import type { RunEnding, RunLedger } from "../step/ledger.ts";
import type { TrainingEngine } from "../step/training-engine.ts";
import type { Teachers } from "../teachers/teacher.ts";
import type { RequestedControl } from "./requested-control.ts";
import type { RunContext } from "./run-context.ts";
import { runLoop } from "./run-loop.ts";
import type { RunProgress, RunRecord } from "./run-record.ts";
import type { BrokenRun } from "./run-registry.ts";
import { SupervisedRows } from "./supervised-rows.ts";
import type { UserAlgorithms } from "./user-modules.ts";

/** What all tenures of this process share. */
export interface TenureDeps {
  readonly stateRoot: string;
  readonly ledger: RunLedger;
  readonly jobs: JobQueue;
  readonly rollouts: ScoredRollouts;
  readonly pipeline: Pipeline;
  /** Absent = it is not measured how long the engines idle. */
  readonly replicaTimes?: ReplicaTimes;
  readonly tasks: TaskSource;
  readonly groupJudges: GroupJudges;
  readonly board: RunStateBoard;
  readonly events: RunEvents;
  readonly createEngine: (run: RunRecord, folders: RunFolders) => Promise<TrainingEngine>;
  /** Makes the engine of a run's critic; undefined where the run has none. Absent = no run has one. */
  readonly createCritic?: (run: RunRecord, folders: RunFolders) => Promise<CriticEngine | undefined>;
  /** Makes the engines of a run's further policies. Absent = no run has any. */
  readonly createLearners?: (run: RunRecord, folders: RunFolders) => Promise<Learner[]>;
  /** Makes the engines of a run's teachers. Absent = no teacher has a model of its own. */
  readonly createTeachers?: (run: RunRecord, folders: RunFolders) => Promise<Teachers>;
  /** Loads what a run takes from modules of its user. Absent = every run names Hone's own. */
  readonly userAlgorithms?: (config: RunConfig) => Promise<UserAlgorithms>;
  readonly logger: Logger;
  /** Time between two saved states of a warm start. @default 60_000 */
  readonly warmStateMs?: number;
  /** How long to wait for room in a full stream of episodes before steps are replayed to make room. @default 20_000 */
  readonly fullMs?: number;
}

/** A killed process loses at most this much of a long warm start; a state of gigabytes takes seconds to write. */
const WARM_STATE_MS = 60_000;

/** The handle by which the supervisor controls one tenure. */
export interface TenureControl {
  readonly requested: RequestedControl;
  /** Ends the tenure with its reason (T2). */
  readonly ending: AbortController;
  /** Aborts when this process stops: what cannot be published by then is left to the next owner. */
  readonly stopping: AbortSignal;
}

/** Works on a run until it ends or the signal aborts. @returns how it ended. @throws the failure, or the signal's reason. */
export async function holdTenure(
  run: RunRecord,
  deps: TenureDeps,
  control: TenureControl,
): Promise<RunEnding> {
  const logger = deps.logger.child({ runId: run.runId, epoch: run.epoch });
  const folders = new RunFolders(deps.stateRoot, run.runId);
  const signal = AbortSignal.any([control.ending.signal, control.stopping]);
  const reporter = new RunReporter(statusOf(run, folders), {
    board: deps.board,
    events: deps.events,
    logger,
    signal,
    onOwnershipLost: (error) => control.ending.abort(error),
  });
  try {
    await work(run, deps, control, { logger, folders, signal, reporter });
    await reporter.drain();
    return await endRun(deps, reporter, folders, RunPhase.completed, "");
  } catch (error) {
    if (signal.reason instanceof RunCancelledError) {
      await deps.jobs.purge(run.runId);
      const reason = "it was cancelled";
      return await endRun(deps, reporter, folders, RunPhase.cancelled, reason);
    }
    signal.throwIfAborted();
    if (!(error instanceof UniformFailureError)) throw error;
    logger.error("the run is stopped", { reason: error.message });
    await retry(() => deps.jobs.purge(run.runId), { signal });
    return await endRun(deps, reporter, folders, RunPhase.failed, error.message);
  }
}

/** Ends a run that cannot go on. */
export async function failRun(run: RunRecord, deps: TenureDeps, reason: string): Promise<RunEnding> {
  const folders = new RunFolders(deps.stateRoot, run.runId);
  return endRun(deps, { status: statusOf(run, folders) }, folders, RunPhase.failed, reason);
}

/** Ends a run whose row is broken, with the reason, and without reading anything else from the row. */
export async function failBrokenRun(
  { runId, epoch, version, reason }: BrokenRun,
  deps: TenureDeps,
): Promise<void> {
  const status: RunStatus = {
    runId,
    phase: RunPhase.failed,
    version,
    location: "",
    digest: "",
    epoch,
    totalSteps: 0,
    ...NO_WAIT,
    configJson: "{}",
    tokenizerDigest: "",
    resumption: 0,
    quantization: Quantization.none,
    oldestVersion: version,
  };
  await publishEnd(status, deps, RunPhase.failed, reason, "");
}

interface Tools {
  readonly logger: Logger;
  readonly folders: RunFolders;
  readonly signal: AbortSignal;
  readonly reporter: RunReporter;
}

async function work(run: RunRecord, deps: TenureDeps, control: TenureControl, tools: Tools): Promise<void> {
  const { folders, reporter, logger, signal } = tools;
  const { ledger, jobs, rollouts } = deps;
  signal.throwIfAborted();
  using _observing = observeRun(
    () => reporter.status,
    () => reporter.lastStep,
  );
  const progress: RunProgress = {
    version: run.version,
    weightsDigest: run.version === undefined ? "" : run.stateDigest,
    trained: run.recovery?.version,
    recovery: run.recovery,
    neededFrom: run.nextSequence,
    evaluationBytes: undefined,
  };
  const openGroups = isAsynchronous(run.config) ? await loadGroups(run, ledger, reporter) : undefined;
  const isTrained = (slot: Slot) =>
    openGroups?.isSettled(slot, progress.trained ?? 0) ?? slot.step <= (progress.trained ?? 0);
  const wasTrained = (slot: Slot) =>
    openGroups?.wasTrained(slot, run.version ?? 0) ?? slot.step <= (run.version ?? 0);
  const inbox = new RolloutInbox(
    (slot) =>
      progress.version !== undefined &&
      (slot.split === "warm" || (slot.split === "train" ? isTrained(slot) : slot.step < progress.version)),
    run.nextSequence,
    // Rollouts that were trained before the run was resumed are replayed; everything else is made anew.
    ({ slot, resumption }) =>
      resumption === run.resumptions ||
      (slot.split === "train" && wasTrained(slot) && resumption < run.resumptions),
  );
  using _queues = observeQueues(run.runId, inbox, openGroups);
  const traces = new RolloutTraces();
  const ended = new AbortController();
  const gatherer = new RolloutGatherer({
    run,
    jobs,
    rollouts,
    pipeline: deps.pipeline,
    inbox,
    progress,
    traces,
    reporter,
    logger,
    ...(deps.fullMs !== undefined && { fullMs: deps.fullMs }),
    signal: AbortSignal.any([signal, ended.signal]),
  });
  if (run.resumptions > 0) {
    const { resumptions: resumption } = run;
    reporter.event({ kind: "resumed", resumption }, messageIdOf("resumed", resumption));
  }
  const reading = gatherer.read();
  let engine: TrainingEngine | undefined;
  let critic: CriticEngine | undefined;
  let learners: Learner[] = [];
  let teachers: Teachers = new Map();
  try {
    engine = await folders.using(folders.model, () => deps.createEngine(run, folders));
    critic = await folders.using(folders.model, async () => deps.createCritic?.(run, folders));
    learners = (await folders.using(folders.model, async () => deps.createLearners?.(run, folders))) ?? [];
    teachers =
      (await folders.using(folders.model, async () => deps.createTeachers?.(run, folders))) ?? teachers;
    const own = (await deps.userAlgorithms?.(run.config)) ?? {};
    const tasks = new SplitTasks(run.config, deps.tasks, reporter, own.curricula);
    const context: RunContext = {
      run,
      engine,
      critic,
      learners,
      teachers,
      ledger,
      rollouts,
      folders,
      reporter,
      engineIdle: new EngineIdle(async () => deps.replicaTimes?.(run.runId, signal)),
      inbox,
      gatherer,
      deadlines: new RolloutDeadlines({ run, ledger, reporter }),
      tasks,
      openGroups,
      supervised: new SupervisedRows({ run, engine, folders, tasks, signal }),
      groupJudges: deps.groupJudges,
      own,
      logger,
      progress,
      warmStateMs: deps.warmStateMs ?? WARM_STATE_MS,
      signal,
    };
    await runLoop(context, control.requested);
  } catch (error) {
    if (!signal.aborted && !(error instanceof UniformFailureError))
      reporter.waiting({
        text: `another try after a failure (${describeError(error)})`,
        owner: error instanceof FolderRefusedError ? WaitOwner.you : WaitOwner.trainer,
      });
    throw error;
  } finally {
    ended.abort();
    await reading;
    traces.close(); // T1
    const engines = [engine, critic, ...learners.map((learner) => learner.engine), ...teachers.values()];
    await Promise.all(engines.map((each) => each?.close()));
    await reporter.settle();
  }
}

async function loadGroups(
  { runId, config, recovery }: RunRecord,
  ledger: RunLedger,
  reporter: RunReporter,
): Promise<OpenGroups> {
  const kept = await reporter.untilAvailable(
    { text: "the database (groups to play)", owner: WaitOwner.database },
    () => ledger.groups(runId, recovery?.version ?? 0),
  );
  return new OpenGroups({ config }, kept);
}

async function endRun(
  deps: TenureDeps,
  { status }: { readonly status: RunStatus },
  folders: RunFolders,
  phase: RunEnding,
  reason: string,
): Promise<RunEnding> {
  const checkpoint = await lastCheckpoint({ folders });
  await publishEnd({ ...status, phase, ...NO_WAIT }, deps, phase, reason, checkpoint);
  return phase;
}

/** Publishes the end of a run (T3). */
async function publishEnd(
  final: RunStatus,
  deps: TenureDeps,
  phase: RunEnding,
  reason: string,
  checkpoint: string,
): Promise<void> {
  const { runId, epoch, resumption } = final;
  if (!(await retry(() => deps.board.publish({ ...final, endReason: reason }))))
    throw new OwnershipLostError(runId, epoch);
  await retry(() =>
    deps.events.publish(
      runId,
      { kind: "ended", phase, reason, checkpoint, resumption },
      messageIdOf("ended", resumption),
    ),
  );
  if (!(await retry(() => deps.ledger.end(runId, epoch, phase, reason)))) {
    throw new OwnershipLostError(runId, epoch);
  }
}
