/** A run that is all rollouts: the first example's scripted policy in an environment whose steps take time. */

import type { RunConfig } from "@hone/config";
import { lakeRun } from "@hone/integration-tests/support";

export interface LoadRunOptions {
  readonly name: string;
  readonly seed: number;
  /** Rollouts. */
  readonly tasks: number;
  readonly stepDelayMs: number;
}

/** As small as a model may be: the load is on everything but the engines. */
const TINY_MODEL = {
  hiddenSize: 16,
  numLayers: 1,
  numHeads: 2,
  numKvHeads: 1,
  headDim: 8,
  intermediateSize: 32,
} as const;
/** Rollouts imitated at once: few, large updates. */
const BATCH_SIZE = 256;
/** Longer than any rollout of a load takes. */
const DEADLINE_MS = 24 * 3_600_000;

/** A warm start without a step behind it. */
export async function loadRun({ name, seed, tasks, stepDelayMs }: LoadRunOptions): Promise<RunConfig> {
  const run = await lakeRun({
    name,
    steps: 0,
    tasksPerStep: 1,
    minibatches: 1,
    warmStartTasks: tasks,
    evalTasks: 1,
  });
  const { train } = run.dataset;
  const { warmStart, model } = run;
  if (train.source !== "environment" || warmStart === undefined || !("init" in model)) {
    throw new Error("the example has changed");
  }
  return {
    ...run,
    seed,
    model: { init: { ...model.init, ...TINY_MODEL } },
    warmStart: { ...warmStart, batchSize: BATCH_SIZE },
    dataset: { train: { ...train, config: { ...train.config, stepDelayMs } } },
    rollout: { ...run.rollout, deadlineMs: DEADLINE_MS },
    trainer: {
      ...run.trainer,
      optimizer: {
        ...run.trainer.optimizer,
        schedule: { kind: "constant", warmupSteps: 0, finalRatio: 0 },
      },
    },
  };
}
