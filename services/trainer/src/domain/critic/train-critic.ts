/**
 * The critic's part of a step: its updates towards the returns, in epochs over minibatches of its own.
 *
 * The returns are those of the step's credit, and the values that the clip refers to are those from before the step, so that
 * a step that is made again after a restart makes the same critic.
 */

import {
  BrokenRecordError,
  type Credit,
  type CreditedRollout,
  explainedVariance,
  isValueClipped,
  lossWeights,
  type MetricSet,
  meanOf,
  Reduction,
  type Rollout,
  rolloutTokenCount,
  sampledTokenCount,
  splitMinibatches,
  valueTerm,
} from "@hone/rl";
import type { TrainingSample } from "@hone/train";
import type { RunContext } from "../run/run-context.ts";
import { updateOptimizer } from "../step/optimizer-settings.ts";
import type { CriticEngine } from "./critic-engine.ts";
import { type CriticSettings, criticSettings } from "./critic-settings.ts";

/**
 * @param values of every rollout of the credit, from before the step.
 * @param metrics get the figures of the updates.
 */
export async function trainCritic(
  { run, critic, signal }: { readonly critic: CriticEngine } & Pick<RunContext, "run" | "signal">,
  step: number,
  credit: Pick<Credit, "groups">,
  values: ReadonlyMap<Rollout, Float32Array>,
  metrics: MetricSet,
): Promise<void> {
  const settings = criticSettings(run.config);
  const { epochs, loss, optimizer } = settings;
  const plan = planCritic(credit, values, settings, run.config.rollout.maxContextTokens);
  addPredictions(metrics, plan.flat());
  for (let epoch = 0; epoch < epochs; epoch++) {
    for (const [index, tokens] of plan.entries()) {
      if (tokens.length === 0) continue;
      const adamW = updateOptimizer(settings, run.config.trainer.steps, { step, epoch, minibatch: index });
      const result = await critic.trainMinibatch({
        samples: tokens.map(({ sample }) => sample),
        term: valueTerm(loss),
        optimizer: adamW,
        maxGradNorm: optimizer.maxGradNorm,
      });
      metrics.add("critic/loss", Reduction.mean, result.loss);
      metrics.add("critic/grad_norm", Reduction.mean, result.gradNorm);
      metrics.add("critic/learning_rate", Reduction.last, adamW.learningRate);
      addClipped(metrics, tokens, result.values, settings);
      signal.throwIfAborted();
    }
  }
}

/** A sample with what the critic said of its tokens and is to say, each [N]. */
interface CriticSample {
  readonly sample: TrainingSample;
  readonly oldValues: Float32Array;
  readonly returns: Float32Array;
}

/** The samples of each minibatch, in order of their slots. */
function planCritic(
  { groups }: Pick<Credit, "groups">,
  values: ReadonlyMap<Rollout, Float32Array>,
  { minibatches, loss }: CriticSettings,
  maxContextTokens: number,
): CriticSample[][] {
  return splitMinibatches(groups, minibatches).map((ofMinibatch) => {
    const rollouts = ofMinibatch.flatMap((group) => group.rollouts);
    const weights = lossWeights(
      rollouts.map(({ rollout }) => rolloutTokenCount(rollout)),
      loss.aggregate,
      maxContextTokens,
    );
    return rollouts.flatMap((credited, i) => samplesOf(credited, values.get(credited.rollout), weights[i]!));
  });
}

function samplesOf(
  { rollout, returns }: CreditedRollout,
  values: Float32Array | undefined,
  weight: number,
): CriticSample[] {
  const count = rolloutTokenCount(rollout);
  if (returns?.length !== count || values?.length !== count) {
    const { task, index } = rollout.slot;
    throw new BrokenRecordError(
      `rollout ${index} of task ${task} has ${count} sampled tokens, but ${returns?.length ?? 0} returns and ${values?.length ?? 0} values for the critic`,
    );
  }
  let begin = 0;
  return rollout.samples.map((sample) => {
    const { tokenIds, lossMask } = sample;
    const end = begin + sampledTokenCount(sample);
    const oldValues = values.slice(begin, end);
    const ofSample = Float32Array.from(returns.subarray(begin, end));
    begin = end;
    return {
      oldValues,
      returns: ofSample,
      sample: {
        tokenIds,
        lossMask,
        inputs: { oldValue: oldValues, return: ofSample },
        weights: new Float32Array(oldValues.length).fill(weight),
      },
    };
  });
}

/** How well the values from before the step predicted its returns. */
function addPredictions(metrics: MetricSet, samples: readonly CriticSample[]): void {
  const values = samples.flatMap(({ oldValues }) => Array.from(oldValues));
  const returns = samples.flatMap((each) => Array.from(each.returns));
  metrics.add("critic/value", Reduction.last, meanOf(values));
  metrics.add("critic/return", Reduction.last, meanOf(returns));
  metrics.add("critic/explained_variance", Reduction.last, explainedVariance(values, returns));
}

function addClipped(
  metrics: MetricSet,
  samples: readonly CriticSample[],
  values: readonly Float32Array[],
  { loss }: CriticSettings,
): void {
  let clipped = 0;
  let count = 0;
  samples.forEach(({ oldValues, returns }, i) => {
    values[i]!.forEach((value, token) => {
      if (isValueClipped({ value, oldValue: oldValues[token]!, return: returns[token]! }, loss)) clipped++;
    });
    count += oldValues.length;
  });
  metrics.add("critic/clip_fraction", Reduction.mean, clipped / Math.max(1, count), count);
}
