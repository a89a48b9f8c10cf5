/**
 * The loop of a run: its first version, then step after step, each committed before the next begins.
 *
 * The loop remembers nothing that is not in the database and the state folder: the next owner of the run begins with
 * `restore` and goes on as if nothing had happened.
 */

import { hasReference, startVersion } from "@hone/config";
import { RunPhase } from "../report/run-status.ts";
import { sendStepEvent } from "../report/step-event.ts";
import { WaitOwner } from "../report/wait.ts";
import { exportCheckpoint, isCheckpointDue } from "../state/checkpoints.ts";
import { keepState } from "../state/kept-states.ts";
import { loadState } from "../state/load-state.ts";
import { isEvaluationDue } from "../state/state-cadence.ts";
import { removeOldStates } from "../state/write-state.ts";
import { trainStep } from "../step/train-step.ts";
import { evaluate } from "./evaluation.ts";
import { loadReference, makeFirstVersion } from "./first-version.ts";
import { replay } from "./replay.ts";
import type { RequestedControl } from "./requested-control.ts";
import type { RunContext } from "./run-context.ts";

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
  const { run, reporter, ledger, progress, tasks } = context;
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
  const published = { version, digest: run.stateDigest, location: run.stateFolder, oldestVersion: version };
  if (needsOptimizer && recovery !== undefined && recovery.version !== version) {
    // The replicas load nothing that is computed again here.
    await reporter.publish(published);
    const { folder, digest } = await replay(context, recovery, version);
    await reporter.publish({ ...published, location: folder, digest });
  } else {
    const state = { folder: run.stateFolder, digest: run.stateDigest, files: run.stateFiles };
    await loadState(context, state, { hasOptimizer: needsOptimizer });
    progress.trained = version;
    await reporter.publish(published);
  }
  // The previous owner may have died between the commit and its event; an event that is sent twice is stored once.
  const step = await reporter.untilAvailable(
    { text: "the database (last step)", owner: WaitOwner.database },
    () => ledger.step(run.runId, version),
  );
  if (version > startVersion(run.config) && step !== undefined) sendStepEvent(context, version, step);
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
