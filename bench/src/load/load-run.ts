/** A run that consists of rollouts: the first example's scripted policy in an environment whose steps take time. */

import type { RunConfig } from "@hone/config";
import { lakeRun } from "@hone/integration-tests/support";

export interface LoadRunOptions {
  readonly name: string;
  readonly seed: number;
  /** Rollouts. */
  readonly tasks: number;
  readonly stepDelayMs: number;
}

/** The smallest possible model, so that the load is not on the engines. */
const TINY_MODEL = {
  hiddenSize: 16,
  numLayers: 1,
  numHeads: 2,
  numKvHeads: 1,
  headDim: 8,
  intermediateSize: 32,
} as const;
/** Rollouts per update of the warm start, so that there are few, large updates. */
const BATCH_SIZE = 256;
/** Longer than any rollout of a load. */
const DEADLINE_MS = 24 * 3_600_000;

/** A warm start with no steps after it. */
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
