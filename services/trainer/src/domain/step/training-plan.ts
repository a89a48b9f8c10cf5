/**
 * From the credit of a step to the minibatches that the engine trains on.
 *
 * P1: minibatches and the samples in them follow the slots: float sums depend on the order, so nothing else may set it.
 * P2: where the loss is advantages alone, rollouts without an advantage give no gradient: they are counted in the
 *     weights and left out of the work. A minibatch in which nobody has one is skipped, and changes no optimizer state.
 */

import type { RunConfig } from "@hone/config";
import {
  advantagesOfSample,
  type Credit,
  type CreditedRollout,
  hasAdvantage,
  lossWeights,
  rolloutTokenCount,
  type Sample,
  splitMinibatches,
} from "@hone/rl";

/** A sample with the numbers that its sampled tokens carry. */
export interface PlannedSample {
  readonly credited: CreditedRollout;
  readonly sample: Sample;
  /** [N] of each of its sampled tokens. */
  readonly advantages: Float32Array;
  /** Loss weight of each of its sampled tokens. */
  readonly weight: number;
}

export interface PlannedMinibatch {
  /** Samples to work on, in order (P1). Empty = the minibatch is skipped (P2). */
  readonly samples: readonly PlannedSample[];
  readonly rollouts: readonly CreditedRollout[];
}

/** Cuts a step into minibatches with loss weights. */
export function planTraining(credit: Credit, config: RunConfig): PlannedMinibatch[] {
  const { loss, kl } = config.algorithm;
  const isAdvantageOnly = loss.entropy === 0 && kl.coefficient === 0;
  return splitMinibatches(credit.groups, config.trainer.minibatches).map((groups) => {
    const rollouts = groups.flatMap((group) => group.rollouts);
    const weights = lossWeights(
      rollouts.map(({ rollout }) => rolloutTokenCount(rollout)),
      loss.aggregate,
      config.rollout.maxContextTokens,
    );
    const samples = rollouts.flatMap((credited, i) =>
      isAdvantageOnly && !hasAdvantage(credited)
        ? []
        : credited.rollout.samples.map((sample, index) => ({
            credited,
            sample,
            advantages: advantagesOfSample(credited, index),
            weight: weights[i]!,
          })),
    );
    return { rollouts, samples };
  });
}
