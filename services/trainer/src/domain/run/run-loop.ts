/**
 * The loop of a run: its first version, then step after step, each committed before the next begins.
 *
 * The loop remembers nothing that is not in the database and the state folder: the next owner of the run begins with
 * `restore` and goes on as if nothing had happened.
 */

import { hasReference, startVersion } from "@hone/config";
import { carriedKlFigures } from "../credit/kl-reward.ts";
import { loadCritic } from "../critic/critic-state.ts";
import { recallRunFile } from "../groups/keep-groups.ts";
import { loadLearnerReferences } from "../learners/learner.ts";
import { RunPhase } from "../report/run-status.ts";
import { sendStepEvent } from "../report/step-event.ts";
import { diskWait, WaitOwner } from "../report/wait.ts";
import { exportCheckpoint, isCheckpointDue } from "../state/checkpoints.ts";
import { keepState } from "../state/kept-states.ts";
import { loadKeptState, loadState } from "../state/load-state.ts";
import { keepReference, loadReference } from "../state/reference.ts";
import { isEvaluationDue } from "../state/state-cadence.ts";
import { removeOldStates } from "../state/write-state.ts";
import { commitVersion, publishVersion } from "../step/commit.ts";
import { trainStep } from "../step/train-step.ts";
import { evaluate } from "./evaluation.ts";
import { replay } from "./replay.ts";
import type { RequestedControl } from "./requested-control.ts";
import type { RunContext } from "./run-context.ts";
import { warmStart } from "./warm-start.ts";

/**
 * Runs until the last step is committed, evaluated and exported; without steps, until the first version is evaluated.
 * @throws the reason of the context's signal.
 */
export async function runLoop(context: RunContext, requested: RequestedControl): Promise<void> {
  const { run, progress, signal } = context;
  const { config } = run;
  await restore(context);
  for (;;) {
    signal.throwIfAborted();
    const version = progress.version ?? startVersion(config);
    if (isEvaluationDue(config, version)) await evaluate(context, version);
    if (isCheckpointDue(config, version)) await exportCheckpoint(context, version);
    if (version >= config.trainer.steps) return;
    await pauseIfAsked(context, requested, version);
    await trainStep(context, version + 1);
  }
}

/** Brings the engine and the published state to the last commit; makes the first version where there is none. */
async function restore(context: RunContext): Promise<void> {
  const { run, learners, folders, reporter, ledger, progress, tasks } = context;
  if (progress.version === undefined) {
    await makeFirstVersion(context);
    return;
  }
  const { version, recovery } = progress;
  if (tasks.dependsOnVisits) {
    const visits = await reporter.untilAvailable(
      { text: "the database (visits of tasks)", owner: WaitOwner.database },
      () => ledger.visits(run.runId),
    );
    tasks.record(visits);
  }
  const needsOptimizer = version < run.config.trainer.steps;
  await keepState(context); // the previous owner may have died before it did
  await removeOldStates(context, {
    committed: run.stateFolder,
    recovery: needsOptimizer ? recovery?.folder : undefined,
    oldestVersion: version - 1,
    epoch: run.epoch,
  });
  if (hasReference(run.config)) await loadReference(context);
  await loadLearnerReferences(run, learners, folders.absolute(folders.reference));
  const committed = { version, folder: run.stateFolder, digest: run.stateDigest, files: run.stateFiles };
  if (needsOptimizer && recovery !== undefined && recovery.version !== version) {
    // The replicas load nothing that is computed again here.
    await publishVersion(context, committed);
    await publishVersion(context, { ...(await replay(context, recovery, version)), version });
  } else {
    await loadState(context, committed, { hasOptimizer: needsOptimizer });
    progress.trained = version;
    await publishVersion(context, committed);
  }
  // The previous owner may have died between the commit and its event; an event that is sent twice is stored once.
  const step = await reporter.untilAvailable(
    { text: "the database (last step)", owner: WaitOwner.database },
    () => ledger.step(run.runId, version),
  );
  if (version > startVersion(run.config) && step !== undefined) sendStepEvent(context, version, step);
}

/** Makes the first version and commits it. */
function makeFirstVersion(context: RunContext): Promise<void> {
  const isFromKept = context.run.config.replay?.from !== undefined;
  return isFromKept ? takeKeptVersion(context) : makeVersionZero(context);
}

/** Makes version 0: the first weights, or what the warm start trains from them or from an earlier owner's saved state. */
async function makeVersionZero(context: RunContext): Promise<void> {
  const { run, engine, reporter, progress } = context;
  const { warmStart: warmStartConfig } = run.config;
  if (warmStartConfig !== undefined) reporter.phase(RunPhase.warmStart, 0);
  // Before anything is trained, so that what cannot be learnt is reported at once and not after hours.
  await context.supervised.check();
  const { recovery } = progress;
  if (recovery !== undefined) {
    await loadState(context, recovery, { hasOptimizer: true });
  }
  await removeOldStates(context, { recovery: recovery?.folder, epoch: run.epoch });
  // Both at once: the rollouts of a scripted policy need no engine, and an engine handles its calls in order.
  const [, trained] = await Promise.all([
    recovery === undefined ? engine.initialise() : undefined,
    warmStartConfig === undefined ? [] : warmStart(context, warmStartConfig),
  ]);
  if (hasReference(run.config)) await keepReference(context);
  await commitVersion(context, { version: 0, trained, metrics: {} });
  await loadFirstCritic(context);
  await loadLearnerReferences(run, context.learners, context.folders.absolute(context.folders.reference));
}

/** Goes on from a state that the run that is replayed kept. */
async function takeKeptVersion(context: RunContext): Promise<void> {
  const { run, supervised } = context;
  await supervised.check();
  await removeOldStates(context, { recovery: undefined, epoch: run.epoch });
  if (hasReference(run.config)) {
    await loadKeptState(context, 0);
    await keepReference(context);
  }
  const version = startVersion(run.config);
  const { metrics } = await loadKeptState(context, version);
  const { algorithm } = await recallRunFile(context);
  const carried = carriedKlFigures(run.config.algorithm.reward.kl, algorithm.reward.kl, metrics);
  await commitVersion(context, { version, trained: [], metrics: carried });
}

/** The critic of version 0 is made on the disk, of the policy's weights. */
async function loadFirstCritic({
  critic,
  progress,
  folders,
  reporter,
}: Pick<RunContext, "critic" | "progress" | "folders" | "reporter">): Promise<void> {
  const { recovery } = progress;
  if (critic === undefined || recovery === undefined) return;
  await reporter.untilAvailable(diskWait(recovery.folder), () =>
    loadCritic({ critic }, folders.absolute(recovery.folder), recovery.files),
  );
}

async function pauseIfAsked(
  context: Pick<RunContext, "reporter" | "signal">,
  requested: RequestedControl,
  version: number,
): Promise<void> {
  if (!requested.isPauseRequested) return;
  context.reporter.phase(RunPhase.paused, version);
  context.reporter.waiting({ text: "someone to resume it", owner: WaitOwner.you });
  await requested.untilResumed(context.signal);
  context.reporter.clearWait();
}
