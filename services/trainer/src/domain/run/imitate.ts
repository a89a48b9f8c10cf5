/**
 * Imitation: samples are learnt by cross-entropy, batch after batch, before the first step.
 *
 * I1: the order of each epoch is a function of the run's seed.
 * I2: the steps start with a fresh optimizer: moments of the small gradients at the end of imitation would turn the
 *     first policy gradients into large updates.
 * I3: a restart goes on from the last saved state: now and then the state is saved, and what it holds is recorded. The
 *     moments at which that happens do not change the result.
 */

import type { RunConfig } from "@hone/config";
import { deriveSeed, Random } from "@hone/core";
import { IMITATION_TERMS, type MaskedTokens } from "@hone/rl";
import { OwnershipLostError } from "../errors.ts";
import { WaitOwner } from "../report/wait.ts";
import { removeOldStates, writeState } from "../state/write-state.ts";
import { warmStartOptimizer } from "../step/optimizer-settings.ts";
import { imitationSamples } from "../step/training-sample.ts";
import type { RunContext } from "./run-context.ts";

/** Least time between two progress events. */
const PROGRESS_INTERVAL_MS = 500;

type ImitationContext = Pick<
  RunContext,
  "run" | "engine" | "ledger" | "folders" | "reporter" | "logger" | "progress" | "warmStateMs" | "signal"
>;

/** @param items what is learnt: each item holds the samples of one rollout or conversation. */
export async function imitate(
  context: ImitationContext,
  {
    batchSize,
    epochs,
    learningRate,
  }: Pick<NonNullable<RunConfig["warmStart"]>, "batchSize" | "epochs" | "learningRate">,
  items: readonly (readonly MaskedTokens[])[],
): Promise<void> {
  const { run, engine, reporter, signal, logger, progress } = context;
  const updatesTotal = Math.ceil(items.length / batchSize) * epochs;
  const optimizer = warmStartOptimizer(run.config, learningRate);
  const updatesBefore = progress.recovery?.warmUpdates ?? 0; // I3
  let updatesDone = 0;
  let lastTold = Number.NEGATIVE_INFINITY;
  let lastSaved = performance.now();
  for (let epoch = 0; epoch < epochs; epoch++) {
    const order = shuffled(items, deriveSeed(run.config.seed, "warm-start", epoch)); // I1
    for (let begin = 0; begin < order.length; begin += batchSize) {
      signal.throwIfAborted();
      updatesDone++;
      if (updatesDone <= updatesBefore) continue;
      const { loss } = await engine.trainMinibatch({
        samples: imitationSamples(order.slice(begin, begin + batchSize).flat()),
        terms: IMITATION_TERMS,
        entropyCoefficient: 0,
        optimizer,
        maxGradNorm: run.config.trainer.optimizer.maxGradNorm,
      });
      if (updatesDone < updatesTotal && performance.now() - lastSaved >= context.warmStateMs) {
        await saveProgress(context, updatesDone);
        lastSaved = performance.now();
      }
      if (updatesDone < updatesTotal && performance.now() - lastTold < PROGRESS_INTERVAL_MS) continue;
      lastTold = performance.now();
      reporter.warmStartProgress({
        rolloutsDone: items.length,
        rolloutsTotal: items.length,
        updatesDone,
        updatesTotal,
        loss,
      });
    }
  }
  await engine.resetOptimizer(); // I2
  logger.info("warm start done", { items: items.length, updates: updatesDone });
}

/** I3 */
async function saveProgress(context: ImitationContext, warmUpdates: number): Promise<void> {
  const { run, folders, ledger, reporter, progress } = context;
  const folder = folders.warmState(warmUpdates, run.epoch);
  const state = await writeState(context, folder, { isWhole: true });
  const recovery = { folder, ...state, version: undefined, warmUpdates };
  const isOurs = await reporter.untilAvailable(
    { text: "the database (warm start)", owner: WaitOwner.database },
    () => ledger.recordRecovery(run.runId, run.epoch, recovery, progress.neededFrom),
  );
  if (!isOurs) throw new OwnershipLostError(run.runId, run.epoch);
  progress.recovery = recovery;
  await removeOldStates(context, { recovery: folder, epoch: run.epoch });
}

/** Fisher-Yates. */
function shuffled<T>(items: readonly T[], seed: number): T[] {
  const random = new Random(seed);
  const result = [...items];
  for (let i = result.length - 1; i > 0; i--) {
    const j = random.nextInt(i + 1);
    [result[i], result[j]] = [result[j]!, result[i]!];
  }
  return result;
}
