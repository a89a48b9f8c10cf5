/**
 * The loop of a run: version 0, then step after step, each committed before the next begins.
 *
 * The loop keeps nothing that the database and the state folder do not hold: whoever owns the run next begins with
 * `restore` and goes on as if nothing had happened.
 */

import { hasReference } from "@hone/config";
import { RunPhase } from "../report/run-status.ts";
import { sendStepEvent } from "../report/step-event.ts";
import { diskWait, WaitOwner } from "../report/wait.ts";
import { checkWeights } from "../state/check-state.ts";
import { exportCheckpoint, isCheckpointDue } from "../state/checkpoints.ts";
import { loadState } from "../state/load-state.ts";
import { isEvaluationDue } from "../state/state-cadence.ts";
import { removeOldStates } from "../state/write-state.ts";
import { commitVersion } from "../step/commit.ts";
import { trainStep } from "../step/train-step.ts";
import { evaluate } from "./evaluation.ts";
import { replay } from "./replay.ts";
import type { RunContext } from "./run-context.ts";
import type { WishBoard } from "./run-wishes.ts";
import { warmStart } from "./warm-start.ts";

/** Runs until the last step is committed, evaluated and exported; without steps, until version 0 is evaluated. @throws the reason of the context's signal. */
export async function runLoop(context: RunContext, wishes: WishBoard): Promise<void> {
  const { run, progress, signal } = context;
  const { config } = run;
  await restore(context);
  for (;;) {
    signal.throwIfAborted();
    const version = progress.version ?? 0;
    if (isEvaluationDue(config, version)) await evaluate(context, version);
    if (isCheckpointDue(config, version)) await exportCheckpoint(context, version);
    if (version >= config.trainer.steps) return;
    await pauseIfAsked(context, wishes, version);
    await trainStep(context, version + 1);
  }
}

/** Brings engine and published state to the last commit; makes version 0 where there is none. */
async function restore(context: RunContext): Promise<void> {
  const { run, reporter, ledger, progress, tasks } = context;
  if (progress.version === undefined) {
    await makeFirstVersion(context);
    return;
  }
  const { version, recovery } = progress;
  if (tasks.curriculum !== undefined) {
    const visits = await reporter.untilAvailable(
      { text: "the database (visits of tasks)", owner: WaitOwner.database },
      () => ledger.visits(run.runId),
    );
    tasks.curriculum.record(visits);
  }
  const needsOptimizer = version < run.config.trainer.steps;
  await removeOldStates(context, {
    committed: run.stateFolder,
    recovery: needsOptimizer ? recovery?.folder : undefined,
    oldestVersion: version - 1,
    epoch: run.epoch,
  });
  if (hasReference(run.config)) await loadReference(context);
  const published = { version, digest: run.stateDigest, location: run.stateFolder, oldestVersion: version };
  if (needsOptimizer && recovery !== undefined && recovery.version !== version) {
    // The replicas need nothing of what is made again here.
    await reporter.publish(published);
    const { folder, digest } = await replay(context, recovery, version);
    await reporter.publish({ ...published, location: folder, digest });
  } else {
    const state = { folder: run.stateFolder, digest: run.stateDigest, files: run.stateFiles };
    await loadState(context, state, { hasOptimizer: needsOptimizer });
    progress.trained = version;
    await reporter.publish(published);
  }
  // The owner before may have died between the commit and its event; one that was sent is stored once.
  const step = await reporter.untilAvailable(
    { text: "the database (last step)", owner: WaitOwner.database },
    () => ledger.step(run.runId, version),
  );
  if (version > 0 && step !== undefined) sendStepEvent(context, version, step);
}

/** Version 0: the first weights, or what the warm start makes of them or of an earlier owner's state within it. */
async function makeFirstVersion(context: RunContext): Promise<void> {
  const { run, engine, reporter, progress } = context;
  const { warmStart: supervised } = run.config;
  if (supervised !== undefined) reporter.phase(RunPhase.warmStart, 0);
  const { recovery } = progress;
  if (recovery !== undefined) {
    await loadState(context, recovery, { hasOptimizer: true });
  }
  await removeOldStates(context, { recovery: recovery?.folder, epoch: run.epoch });
  // At once: the rollouts of a scripted policy need no engine, and an engine makes its calls in their order.
  const [, trained] = await Promise.all([
    recovery === undefined ? engine.initialise() : undefined,
    supervised === undefined ? [] : warmStart(context, supervised),
  ]);
  if (hasReference(run.config)) await keepReference(context);
  await commitVersion(context, { version: 0, trained, metrics: {} });
}

/** Keeps version 0 for all tenures, before it is committed: who goes on from a commit finds it there. */
async function keepReference({
  run,
  engine,
  folders,
  reporter,
}: Pick<RunContext, "run" | "engine" | "folders" | "reporter">): Promise<void> {
  const { reference } = folders;
  await reporter.untilAvailable(diskWait(reference), () =>
    folders.writeReference(run.epoch, (folder) => engine.saveWeights(folder)),
  );
  await engine.loadReference(folders.absolute(reference));
}

/** Its weights must be those that version 0 was committed with. */
async function loadReference({
  run,
  engine,
  folders,
  reporter,
  ledger,
}: Pick<RunContext, "run" | "engine" | "folders" | "reporter" | "ledger">): Promise<void> {
  const folder = folders.absolute(folders.reference);
  const digest = await reporter.untilAvailable(
    { text: "the database (version 0)", owner: WaitOwner.database },
    () => ledger.stateDigest(run.runId, 0),
  );
  await reporter.untilAvailable(diskWait(folders.reference), () =>
    folders.using(folders.reference, async () => {
      if (digest !== undefined) await checkWeights(folder, digest);
      await engine.loadReference(folder);
    }),
  );
}

async function pauseIfAsked(
  context: Pick<RunContext, "reporter" | "signal">,
  wishes: WishBoard,
  version: number,
): Promise<void> {
  if (!wishes.isPauseRequested) return;
  context.reporter.phase(RunPhase.paused, version);
  context.reporter.waiting({ text: "someone to resume it", owner: WaitOwner.you });
  await wishes.untilResumed(context.signal);
  context.reporter.waitingNoMore();
}
