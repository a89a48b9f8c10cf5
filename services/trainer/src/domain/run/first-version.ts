/** The first version of a run, which is version 0 or one that another run kept, and the reference policy, which is version 0. */

import { hasReference, startVersion } from "@hone/config";
import { carriedKlFigures } from "../credit/kl-reward.ts";
import { loadCritic } from "../critic/critic-state.ts";
import { recallRunFile } from "../groups/keep-groups.ts";
import { RunPhase } from "../report/run-status.ts";
import { diskWait, WaitOwner } from "../report/wait.ts";
import { checkWeights } from "../state/check-state.ts";
import { loadKeptState, readKeptState } from "../state/kept-states.ts";
import { loadState } from "../state/load-state.ts";
import { removeOldStates } from "../state/write-state.ts";
import { commitVersion } from "../step/commit.ts";
import type { RunContext } from "./run-context.ts";
import { warmStart } from "./warm-start.ts";

/** Makes the first version and commits it. */
export function makeFirstVersion(context: RunContext): Promise<void> {
  const { replay } = context.run.config;
  return replay?.from === undefined ? makeVersionZero(context) : takeKeptVersion(context);
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

/** Stores version 0 as the reference before it is committed, so that every later owner finds it. */
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

/** Loads the reference, whose weights must be those of version 0. */
export async function loadReference(
  context: Pick<RunContext, "run" | "engine" | "folders" | "reporter" | "ledger">,
): Promise<void> {
  const { engine, folders, reporter } = context;
  const folder = folders.absolute(folders.reference);
  const digest = await digestOfVersionZero(context);
  await reporter.untilAvailable(diskWait(folders.reference), () =>
    folders.using(folders.reference, async () => {
      if (digest !== undefined) await checkWeights(folder, digest);
      await engine.loadReference(folder);
    }),
  );
}

/** The digest that version 0 was committed with, by this run or by the one that is replayed. */
async function digestOfVersionZero(
  context: Pick<RunContext, "run" | "folders" | "reporter" | "ledger">,
): Promise<string | undefined> {
  const { run, reporter, ledger } = context;
  if (startVersion(run.config) > 0) return (await readKeptState(context, 0)).digest;
  return reporter.untilAvailable({ text: "the database (version 0)", owner: WaitOwner.database }, () =>
    ledger.stateDigest(run.runId, 0),
  );
}
