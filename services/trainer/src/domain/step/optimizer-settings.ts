/** The settings of an optimizer update, from the run file. */

import type { RunConfig } from "@hone/config";
import { type AdamWOptions, learningRateAt } from "@hone/train";

/**
 * Optimizer settings of one update of a step. The learning rate depends only on the update's place in the run: skipped
 * minibatches count like others, so it does not depend on rewards.
 * @param step from 1. @param epoch from 0. @param minibatch from 0.
 */
export function stepOptimizer(
  config: RunConfig,
  step: number,
  epoch: number,
  minibatch: number,
): AdamWOptions {
  const { optimizer, epochs, minibatches, steps } = config.trainer;
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
  return adamW(config, learningRate);
}

/** Optimizer settings of the warm start, which has a constant rate of its own. */
export function warmStartOptimizer(config: RunConfig, learningRate: number | undefined): AdamWOptions {
  return adamW(config, learningRate ?? config.trainer.optimizer.learningRate);
}

function adamW({ trainer }: RunConfig, learningRate: number): AdamWOptions {
  const { beta1, beta2, epsilon, weightDecay } = trainer.optimizer;
  return { learningRate, beta1, beta2, epsilon, weightDecay };
}
