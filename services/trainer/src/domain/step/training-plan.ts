/**
 * Turns the credit of a step into the minibatches that the engine trains on.
 *
 * P1: minibatches and the samples in them are ordered by slots: float sums depend on the order, so nothing else may set it.
 * P2: where the loss has only advantages, rollouts without an advantage give no gradient: they are counted in the weights
 *     but not trained. A minibatch without any advantage is skipped and changes no optimizer state.
 */

import type { RunConfig } from "@hone/config";
import {
  advantagesOfSample,
  type Credit,
  type CreditedRollout,
  type Expression,
  hasAdvantage,
  lossWeights,
  policyObjective,
  rolloutTokenCount,
  type Sample,
  sampledTokenCount,
  splitMinibatches,
} from "@hone/rl";

/** A sample with the advantages and the weight of its sampled tokens. */
export interface PlannedSample {
  readonly credited: CreditedRollout;
  readonly sample: Sample;
  /** [N] one for each sampled token. */
  readonly advantages: Float32Array;
  /** [N] log-probability of each sampled token under the old policy, which the ratios of the loss refer to. */
  readonly oldLogprobs: ArrayLike<number>;
  /** [N] loss weight of each sampled token. */
  readonly weights: Float32Array;
  /** [N] the correction's factor, a part of the weight; absent = the run has none. */
  readonly corrections?: Float32Array;
}

export interface PlannedMinibatch {
  /** The samples to train on, in order (P1). Empty = the minibatch is skipped (P2). */
  readonly samples: readonly PlannedSample[];
  readonly rollouts: readonly CreditedRollout[];
}

/** Divides a step into minibatches with loss weights. @param ownLoss what the user's module made, where the loss is the user's. */
export function planTraining(credit: Credit, config: RunConfig, ownLoss?: Expression): PlannedMinibatch[] {
  const { loss, kl } = config.algorithm;
  const { trainsWithoutAdvantage } = policyObjective(loss, kl, ownLoss);
  const isAdvantageOnly = loss.entropy === 0 && kl.coefficient === 0 && !trainsWithoutAdvantage;
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
            oldLogprobs: sample.logprobs,
            weights: new Float32Array(sampledTokenCount(sample)).fill(weights[i]!),
          })),
    );
    return { rollouts, samples };
  });
}
