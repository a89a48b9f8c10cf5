/** The settings of an optimizer update, from the run file. */

import type { RunConfig } from "@hone/config";
import { type AdamWOptions, learningRateAt } from "@hone/train";

/** How a model is updated in each step. */
export interface UpdateSettings {
  readonly optimizer: RunConfig["trainer"]["optimizer"];
  readonly epochs: number;
  readonly minibatches: number;
}

/** The place of an update in a run. */
export interface UpdatePlace {
  /** From 1. */
  readonly step: number;
  /** From 0. */
  readonly epoch: number;
  /** From 0. */
  readonly minibatch: number;
}

/**
 * Optimizer settings of one update. The learning rate depends only on the update's place in the run: skipped minibatches
 * count like others, so it does not depend on rewards.
 * @param steps of the run.
 */
export function updateOptimizer(
  { optimizer, epochs, minibatches }: UpdateSettings,
  steps: number,
  { step, epoch, minibatch }: UpdatePlace,
): AdamWOptions {
  const { schedule } = optimizer;
  const updatesPerStep = epochs * minibatches;
  const learningRate = learningRateAt(
    {
      kind: schedule.kind,
      learningRate: optimizer.learningRate,
      warmupUpdates: schedule.warmupSteps * updatesPerStep,
      totalUpdates: steps * updatesPerStep,
      finalFraction: schedule.finalRatio,
    },
    (step - 1) * updatesPerStep + epoch * minibatches + minibatch,
  );
  return adamW(optimizer, learningRate);
}

/** Optimizer settings of the warm start, which has a constant rate of its own. */
export function warmStartOptimizer(config: RunConfig, learningRate: number | undefined): AdamWOptions {
  const { optimizer } = config.trainer;
  return adamW(optimizer, learningRate ?? optimizer.learningRate);
}

function adamW(
  { beta1, beta2, epsilon, weightDecay }: UpdateSettings["optimizer"],
  learningRate: number,
): AdamWOptions {
  return { learningRate, beta1, beta2, epsilon, weightDecay };
}
