/**
 * The loop of a run: version 0, then step after step, each committed before the next begins.
 *
 * The loop keeps nothing that the database and the state folder do not hold: whoever owns the run next begins with
 * `restore` and goes on as if nothing had happened.
 */

import { isTraining } from "@hone/config";
import { checkState } from "./check-state.ts";
import { exportCheckpoint, isCheckpointDue } from "./checkpoints.ts";
import { commitVersion } from "./commit.ts";
import { evaluate, isEvaluationDue } from "./evaluation.ts";
import type { RunContext } from "./run-context.ts";
import { RunPhase } from "./run-status.ts";
import type { WishBoard } from "./run-wishes.ts";
import { sendStepEvent } from "./step-event.ts";
import { trainStep } from "./train-step.ts";
import { WaitOwner } from "./wait.ts";
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
  const { run, engine, folders, reporter, ledger, progress } = context;
  if (progress.version === undefined) {
    const { warmStart: supervised } = run.config;
    if (supervised !== undefined) reporter.phase(RunPhase.warmStart, 0);
    // At once: the rollouts of a scripted policy need no engine, and an engine makes its calls in their order.
    const [, entries] = await Promise.all([
      engine.initialise(),
      supervised === undefined ? [] : warmStart(context, supervised),
    ]);
    await commitVersion(context, { version: 0, entries, metrics: {} });
    return;
  }
  const { version } = progress;
  await folders.removeOldStates(run.stateFolder, version - 1, run.epoch);
  await checkState(folders.absolute(run.stateFolder), run.stateDigest, {
    hasOptimizer: isTraining(run.config),
  });
  await engine.load(folders.absolute(run.stateFolder));
  await reporter.publish({
    version,
    location: run.stateFolder,
    digest: run.stateDigest,
    oldestVersion: version,
  });
  // The owner before may have died between the commit and its event; one that was sent is stored once.
  const metrics = await reporter.untilAvailable(
    { text: "the database (last step)", owner: WaitOwner.database },
    () => ledger.stepMetrics(run.runId, version),
  );
  if (version > 0 && metrics !== undefined) sendStepEvent(context, version, metrics);
}

async function pauseIfAsked(context: RunContext, wishes: WishBoard, version: number): Promise<void> {
  if (!wishes.isPauseRequested) return;
  context.reporter.phase(RunPhase.paused, version);
  context.reporter.waiting({ text: "someone to resume it", owner: WaitOwner.you });
  await wishes.untilResumed(context.signal);
  context.reporter.waitingNoMore();
}
