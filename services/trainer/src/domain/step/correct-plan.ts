/**
 * Rollout correction (`algorithm.correction`): before the first update of a step the training engine computes the
 * log-probabilities of all that is trained, and from their ratios to those of the sampling each token gets a weight, or is
 * left out. The loss then takes the computed ones as its old policy, where the run file does not say otherwise.
 *
 * Without the key the old policy is the one that sampled, and nothing is computed.
 */

import type { RunConfig } from "@hone/config";
import {
  type CorrectionConfig,
  type CreditedRollout,
  compareTokens,
  correctTokens,
  lossWeights,
  type MetricSet,
  OldPolicy,
  Reduction,
  rolloutTokenCount,
} from "@hone/rl";
import type { TrainingEngine } from "./training-engine.ts";
import type { PlannedMinibatch, PlannedSample } from "./training-plan.ts";
import { trainingSample } from "./training-sample.ts";

/** @returns the plan with the old policy and the weights that the run's correction gives; the plan itself where it has none. */
export async function correctPlan(
  engine: Pick<TrainingEngine, "logprobs">,
  config: RunConfig,
  plan: readonly PlannedMinibatch[],
  metrics: MetricSet,
  onScored: () => void,
): Promise<readonly PlannedMinibatch[]> {
  const { correction } = config.algorithm;
  if (correction === undefined) return plan;
  const old = new Map<PlannedSample, Float32Array>();
  for (const { samples } of plan) {
    if (samples.length === 0) continue;
    const inputs = samples.map((planned) => trainingSample(planned));
    const { logprobs } = await engine.logprobs(inputs, config.rollout.sampling);
    samples.forEach((planned, i) => {
      old.set(planned, logprobs[i]!);
    });
    onScored();
  }
  const corrected = correctSamples(old, correction, metrics);
  return plan.map((minibatch) => correctMinibatch(minibatch, config, corrected));
}

/** The correction of one sample, each [N]. */
interface Corrected {
  readonly oldLogprobs: Float32Array;
  /** What the loss of each token is multiplied by; 0 where it is rejected. */
  readonly factors: Float32Array;
  readonly keptCount: number;
}

function correctSamples(
  old: ReadonlyMap<PlannedSample, Float32Array>,
  correction: CorrectionConfig,
  metrics: MetricSet,
): ReadonlyMap<PlannedSample, Corrected> {
  const samples = [...old.keys()].map(({ sample }) => sample);
  const tokens = compareTokens(
    samples,
    [...old.values()].flatMap((logprobs) => [...logprobs]),
    samples.flatMap(({ logprobs }) => Array.from(logprobs)),
  );
  const { weights, kept, metrics: figures } = correctTokens(tokens, correction);
  for (const [name, value] of Object.entries(figures)) {
    metrics.add(`correction/${name}`, Reduction.last, value);
  }
  let begin = 0;
  return new Map(
    [...old].map(([planned, oldLogprobs]) => {
      const end = begin + oldLogprobs.length;
      const ofSample = kept.subarray(begin, end);
      const factors = Float32Array.from(weights.subarray(begin, end), (weight, i) => weight * ofSample[i]!);
      begin = end;
      return [planned, { oldLogprobs, factors, keptCount: ofSample.reduce((sum, bit) => sum + bit, 0) }];
    }),
  );
}

/** Rejected tokens do not count in the loss weights of the others either; a rollout without a token left counts as none. */
function correctMinibatch(
  { samples, rollouts }: PlannedMinibatch,
  { algorithm: { loss, correction }, rollout: { maxContextTokens } }: RunConfig,
  corrected: ReadonlyMap<PlannedSample, Corrected>,
): PlannedMinibatch {
  const rejected = new Map<CreditedRollout, number>();
  for (const planned of samples) {
    const { factors, keptCount } = corrected.get(planned)!;
    rejected.set(planned.credited, (rejected.get(planned.credited) ?? 0) + factors.length - keptCount);
  }
  const counts = new Map(
    rollouts
      .map((credited): [CreditedRollout, number] => [
        credited,
        rolloutTokenCount(credited.rollout) - (rejected.get(credited) ?? 0),
      ])
      .filter(([, count]) => count > 0),
  );
  const weights = lossWeights([...counts.values()], loss.aggregate, maxContextTokens);
  const weightOf = new Map([...counts.keys()].map((credited, i) => [credited, weights[i]!]));
  const isOldRecomputed = correction?.old === OldPolicy.recomputed;
  return {
    rollouts,
    samples: samples.map((planned) => {
      const { oldLogprobs, factors } = corrected.get(planned)!;
      const weight = weightOf.get(planned.credited) ?? 0;
      return {
        ...planned,
        ...(isOldRecomputed && { oldLogprobs }),
        weights: factors.map((factor) => factor * weight),
        corrections: factors,
      };
    }),
  };
}
