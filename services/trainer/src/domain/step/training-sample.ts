/** Samples as engines take them. */

import { type MaskedTokens, type Sample, sampledTokenCount } from "@hone/rl";
import type { TrainingSample } from "@hone/train";
import type { PlannedSample } from "./training-plan.ts";

/** Numbers of a sample's tokens, each [N], that only some objectives read. */
interface FurtherInputs {
  readonly reference?: Float32Array | undefined;
  readonly selected?: Float32Array | undefined;
  readonly readsReward?: boolean;
}

/** A sample of which only the log-probabilities are wanted. */
export function scoredSample(sample: Sample): TrainingSample {
  const { tokenIds, lossMask } = sample;
  return { tokenIds, lossMask, weights: new Float32Array(sampledTokenCount(sample)) };
}

/**
 * Samples to imitate. Every trained token weighs the same, so that their loss is the mean cross-entropy over these tokens.
 * @param factor of that loss; default 1.
 */
export function imitationSamples(samples: readonly MaskedTokens[], factor = 1): TrainingSample[] {
  const counts = samples.map(sampledTokenCount);
  const total = counts.reduce((sum, count) => sum + count, 0);
  return samples.map(({ tokenIds, lossMask }, i) => ({
    tokenIds,
    lossMask,
    weights: new Float32Array(counts[i]!).fill(factor / total),
  }));
}

/** A planned sample. */
export function trainingSample(
  { credited, sample, advantages, oldLogprobs, weights }: PlannedSample,
  { reference, selected, readsReward = false }: FurtherInputs = {},
): TrainingSample {
  const count = sampledTokenCount(sample);
  return {
    tokenIds: sample.tokenIds,
    lossMask: sample.lossMask,
    inputs: {
      behaviourLogprob: oldLogprobs,
      advantage: advantages,
      ...(readsReward && { reward: new Float32Array(count).fill(credited.reward) }),
      ...(reference !== undefined && { referenceLogprob: reference }),
      ...(selected !== undefined && { selected }),
    },
    weights,
  };
}
