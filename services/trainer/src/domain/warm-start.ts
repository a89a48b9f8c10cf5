/**
 * The supervised phase before the first step: a scripted policy's rollouts are imitated by cross-entropy.
 *
 * W1: its rollouts come by the same road as all others (jobs, episodes, scores), so a restart makes none again.
 * W2: only rollouts whose outcome says something about the agent are imitated; what was sampled is what is learnt.
 * W3: the order of each epoch is a function of the run's seed.
 * W4: the steps start with a fresh optimizer: moments of the small gradients at the end of imitation would turn the
 *     first policy gradients into large updates.
 */

import type { RunConfig } from "@hone/config";
import { deriveSeed, isScorable, Random, Split } from "@hone/core";
import { rolloutTokenCount, sampledTokenCount, weightedSum } from "@hone/rl";
import { Attr, SpanName, withSpan } from "@hone/telemetry";
import type { TrainingSample } from "@hone/train";
import { warmStartOptimizer } from "./optimizer-settings.ts";
import type { Job, LedgerEntry } from "./ports.ts";
import { batchSlots } from "./rollout-gatherer.ts";
import type { RunContext } from "./run-context.ts";
import type { ScoredRollout } from "./scored-rollout.ts";
import { leaveOutUntrainable } from "./trainable.ts";

type WarmStartConfig = NonNullable<RunConfig["warmStart"]>;

/** Least time between two progress events of the updates. */
const PROGRESS_INTERVAL_MS = 500;

/** Trains the engine's fresh weights. @returns what was trained, for the ledger of version 0. */
export async function warmStart(context: RunContext, config: WarmStartConfig): Promise<LedgerEntry[]> {
  return withSpan(
    SpanName.warmStart,
    { parent: "root", attributes: { [Attr.runId]: context.run.runId } },
    async () => {
      const scored = await gatherDemonstrations(context, config);
      const usable = scored.filter(
        ({ rollout }) => isScorable(rollout.outcome) && rolloutTokenCount(rollout) > 0,
      ); // W2
      await imitate(context, config, usable);
      return usable.map(({ rollout, sequence }) => ({
        rollout,
        reward: weightedSum(rollout.scores),
        advantage: 0,
        sequence,
      }));
    },
  );
}

async function gatherDemonstrations(context: RunContext, config: WarmStartConfig): Promise<ScoredRollout[]> {
  const { run, tasks, gatherer, reporter } = context;
  const batch = await tasks.warmStart(config.tasks);
  const jobs: Job[] = batchSlots(Split.warmStart, 0, batch.tasks.length, 1).map((slot) => ({
    slot,
    task: batch.tasks[slot.task]!,
    cursor: batch.cursor + slot.task,
    sampling: run.config.rollout.sampling,
    scriptedPolicy: config.policy,
    lowestVersion: 0,
    highestVersion: 0,
  }));
  const scored = await gatherer.gather("the warm start", jobs, (rolloutsDone, rolloutsTotal) =>
    reporter.warmStartProgress({
      rolloutsDone,
      rolloutsTotal,
      updatesDone: 0,
      updatesTotal: 0,
      loss: Number.NaN,
    }),
  );
  return leaveOutUntrainable(context, scored);
}

async function imitate(
  context: RunContext,
  config: WarmStartConfig,
  usable: readonly ScoredRollout[],
): Promise<void> {
  const { run, engine, reporter, signal, logger } = context;
  const updatesPerEpoch = Math.ceil(usable.length / config.batchSize);
  const updatesTotal = updatesPerEpoch * config.epochs;
  const optimizer = warmStartOptimizer(run.config, config.learningRate);
  let updatesDone = 0;
  let lastTold = Number.NEGATIVE_INFINITY;
  for (let epoch = 0; epoch < config.epochs; epoch++) {
    const order = shuffled(usable, deriveSeed(run.config.seed, "warm-start", epoch)); // W3
    for (let begin = 0; begin < order.length; begin += config.batchSize) {
      signal.throwIfAborted();
      const { loss } = await engine.trainMinibatch({
        samples: imitationSamples(order.slice(begin, begin + config.batchSize)),
        loss: { kind: "cross_entropy" },
        entropyCoefficient: 0,
        optimizer,
        maxGradNorm: run.config.trainer.optimizer.maxGradNorm,
      });
      updatesDone++;
      if (updatesDone < updatesTotal && performance.now() - lastTold < PROGRESS_INTERVAL_MS) continue;
      lastTold = performance.now();
      reporter.warmStartProgress({
        rolloutsDone: usable.length,
        rolloutsTotal: usable.length,
        updatesDone,
        updatesTotal,
        loss,
      });
    }
  }
  await engine.resetOptimizer(); // W4
  logger.info("warm start done", { rollouts: usable.length, updates: updatesDone });
}

/** Every sampled token weighs the same: the loss is the mean cross-entropy over them. */
function imitationSamples(batch: readonly ScoredRollout[]): TrainingSample[] {
  const total = batch.reduce((sum, { rollout }) => sum + rolloutTokenCount(rollout), 0);
  return batch.flatMap(({ rollout }) =>
    rollout.samples.map((sample) => {
      const count = sampledTokenCount(sample);
      return {
        tokenIds: sample.tokenIds,
        lossMask: sample.lossMask,
        weights: new Float32Array(count).fill(1 / total),
      };
    }),
  );
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
