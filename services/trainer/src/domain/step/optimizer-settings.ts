/** The numbers of an optimizer update, as the run file sets them. */

import type { RunConfig } from "@hone/config";
import { type AdamWOptions, learningRateAt } from "@hone/train";

/**
 * Optimizer of an update of a step. The learning rate is a function of where the update stands in the run: skipped
 * minibatches move it on like others, so it does not depend on rewards.
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

/** Optimizer of the warm start: a constant rate of its own. */
export function warmStartOptimizer(config: RunConfig, learningRate: number | undefined): AdamWOptions {
  return adamW(config, learningRate ?? config.trainer.optimizer.learningRate);
}

function adamW({ trainer }: RunConfig, learningRate: number): AdamWOptions {
  const { beta1, beta2, epsilon, weightDecay } = trainer.optimizer;
  return { learningRate, beta1, beta2, epsilon, weightDecay };
}
