/**
 * The optimizer's part of a step: epochs over the minibatches, and the metrics of these updates.
 *
 * N = sampled tokens of a sample. Ratios are pi(token) / old(token), as the engine computed them before each update; the old
 * policy is the one that sampled, or one that a correction recomputes (correct-plan.ts). A
 * loss that chooses tokens from the whole minibatch has it scored before each update.
 */

import type { RunConfig } from "@hone/config";
import {
  type Expression,
  estimateKl,
  estimateOf,
  groupMeans,
  groupsOf,
  IMITATION_TERMS,
  inputsOf,
  isCounted,
  type KlKind,
  type MetricSet,
  meanOf,
  type PolicyObjective,
  policyObjective,
  Reduction,
  type Sample,
} from "@hone/rl";
import type { TrainingSample } from "@hone/train";
import type { TokenRecorder } from "../record/token-recorder.ts";
import { updateOptimizer } from "./optimizer-settings.ts";
import type { Minibatch, MinibatchResult, SampleScores, TrainingEngine } from "./training-engine.ts";
import type { PlannedMinibatch, PlannedSample } from "./training-plan.ts";
import { scoredSample, trainingSample } from "./training-sample.ts";

/** Figures of one rollout's tokens in the last epoch. */
export interface RolloutFigures {
  tokens: number;
  ratioSum: number;
  ratioMax: number;
  clipped: number;
}

export interface Optimised {
  /** Figures by rollout, for its `train` span; a rollout on which no update worked has none. */
  readonly figures: ReadonlyMap<PlannedSample["credited"], RolloutFigures>;
  readonly updateCount: number;
}

/** What the updates of a run are made with. */
export interface OptimiseContext {
  readonly engine: TrainingEngine;
  readonly config: RunConfig;
  /** What the user's module made, where the loss is one of the user's. */
  readonly ownLoss?: Expression | undefined;
  /** What each update imitates, in the order of the updates; absent = nothing. */
  readonly supervised?: readonly (readonly TrainingSample[])[] | undefined;
  /** Notes what each token adds to the gradient; absent = nobody does. */
  readonly recorder?: TokenRecorder | undefined;
}

/** Trains on the plan of a step. `onUpdate` is called between two calls of the engine, and may throw to stop. */
export async function optimise(
  { engine, config, ownLoss, supervised, recorder }: OptimiseContext,
  step: number,
  plan: readonly PlannedMinibatch[],
  metrics: MetricSet,
  onUpdate: () => void,
): Promise<Optimised> {
  const { epochs, minibatches, optimizer } = config.trainer;
  const { kl, loss } = config.algorithm;
  const objective = policyObjective(loss, kl, ownLoss);
  const readsReward = inputsOf(objective.terms).includes("reward");
  const reference = kl.coefficient === 0 ? undefined : await referenceOf(engine, config, plan, onUpdate);
  const figures = new Map<PlannedSample["credited"], RolloutFigures>();
  recorder?.begin(plan);
  let updateCount = 0;
  let isMismatchKnown = false;
  for (let epoch = 0; epoch < epochs; epoch++) {
    if (epoch === epochs - 1) figures.clear();
    for (const [index, { samples }] of plan.entries()) {
      const imitated = supervised?.[epoch * minibatches + index] ?? [];
      if (samples.length === 0 && imitated.length === 0) continue;
      const place = { step, epoch, minibatch: index };
      const adamW = updateOptimizer(config.trainer, config.trainer.steps, place);
      const update = { optimizer: adamW, maxGradNorm: optimizer.maxGradNorm };
      // Before the step's first update the weights are those that sampled, so a mismatch comes from the engines' arithmetic.
      const isFirst = !isMismatchKnown;
      isMismatchKnown = true;
      if (isFirst && samples.length === 0) await measureMismatch(engine, config, step, plan, metrics);
      const selected = await select(engine, config, samples, objective, onUpdate);
      const result =
        samples.length === 0
          ? await imitate(engine, imitated, update)
          : await engine.trainMinibatch({
              ...update,
              samples: samples.map((planned, i) =>
                trainingSample(planned, {
                  reference: reference?.get(planned.sample),
                  selected: selected?.[i],
                  readsReward,
                }),
              ),
              terms: objective.terms,
              entropyCoefficient: loss.entropy,
              temperature: config.rollout.sampling.temperature,
              supervised: imitated,
            });
      if (isFirst && samples.length > 0) {
        addMismatch(
          metrics,
          step,
          samples.map(({ sample }) => sample),
          result,
        );
      }
      updateCount++;
      metrics.add("loss", Reduction.mean, result.loss);
      metrics.add("grad_norm", Reduction.mean, result.gradNorm);
      metrics.add("grad_norm/max", Reduction.max, result.gradNorm);
      metrics.add("learning_rate", Reduction.last, adamW.learningRate);
      addTokenFigures(metrics, figures, samples, { ...result, selected }, objective);
      recorder?.add({ epoch, minibatch: index, samples, result, objective, selected, reference });
      addImitation(metrics, result);
      if (reference !== undefined) addKl(metrics, estimateOf(kl.kind), samples, result, reference);
      onUpdate();
    }
  }
  if (!isMismatchKnown) await measureMismatch(engine, config, step, plan, metrics);
  return { figures, updateCount };
}

/** An update without rollouts. */
async function imitate(
  engine: TrainingEngine,
  samples: readonly TrainingSample[],
  update: Pick<Minibatch, "optimizer" | "maxGradNorm">,
): Promise<MinibatchResult> {
  const objective = { terms: IMITATION_TERMS, entropyCoefficient: 0 };
  const result = await engine.trainMinibatch({ ...update, ...objective, samples });
  return { ...result, logprobs: [], entropies: [], squares: [], supervisedLogprobs: result.logprobs };
}

/** Measures the mismatch of a step whose first update has no rollouts, because every step reports it. */
async function measureMismatch(
  engine: TrainingEngine,
  config: RunConfig,
  step: number,
  plan: readonly PlannedMinibatch[],
  metrics: MetricSet,
): Promise<void> {
  const samples = plan
    .map(({ rollouts }) => rollouts.flatMap(({ rollout }) => rollout.samples))
    .find((candidates) => candidates.length > 0);
  if (samples === undefined) return;
  const inputs = samples.map(scoredSample);
  addMismatch(metrics, step, samples, await engine.logprobs(inputs, config.rollout.sampling));
}

type ReferenceLogprobs = ReadonlyMap<Sample, Float32Array>;

/** The reference's log-probabilities of all samples of the step, computed once because the reference does not change. */
async function referenceOf(
  engine: TrainingEngine,
  config: RunConfig,
  plan: readonly PlannedMinibatch[],
  onScored: () => void,
): Promise<ReferenceLogprobs> {
  const reference = new Map<Sample, Float32Array>();
  for (const { samples } of plan) {
    if (samples.length === 0) continue;
    const inputs = samples.map((planned) => trainingSample(planned));
    const { logprobs } = await engine.referenceLogprobs(inputs, config.rollout.sampling);
    samples.forEach(({ sample }, i) => {
      reference.set(sample, logprobs[i]!);
    });
    onScored();
  }
  return reference;
}

/**
 * Which tokens of a minibatch the loss chooses, under the weights of this moment; undefined where it chooses none.
 * @returns per sample [N] 1 for a chosen token, else 0
 */
async function select(
  engine: TrainingEngine,
  config: RunConfig,
  samples: readonly PlannedSample[],
  { select: choose }: PolicyObjective,
  onScored: () => void,
): Promise<Float32Array[] | undefined> {
  if (choose === undefined || samples.length === 0) return undefined;
  const inputs = samples.map((planned) => trainingSample(planned));
  const { logprobs } = await engine.logprobs(inputs, config.rollout.sampling);
  onScored();
  const chosen = choose({
    logprobs: logprobs.flatMap((values) => [...values]),
    behaviourLogprobs: samples.flatMap(({ oldLogprobs }) => Array.from(oldLogprobs)),
    advantages: samples.flatMap(({ advantages }) => [...advantages]),
  });
  let at = 0;
  return logprobs.map((values) => values.map(() => (chosen[at++] ? 1 : 0)));
}

/** Mean cross-entropy of what was imitated, over its tokens. */
function addImitation(metrics: MetricSet, { supervisedLogprobs }: MinibatchResult): void {
  const logprobs = supervisedLogprobs.flatMap((ofSample) => [...ofSample]);
  if (logprobs.length === 0) return;
  metrics.add("supervised/loss", Reduction.mean, -meanOf(logprobs), logprobs.length);
}

/** Mean estimate of the distance from the reference, over the tokens. */
function addKl(
  metrics: MetricSet,
  kind: KlKind,
  samples: readonly PlannedSample[],
  { logprobs }: MinibatchResult,
  reference: ReferenceLogprobs,
): void {
  let sum = 0;
  let count = 0;
  samples.forEach(({ sample }, i) => {
    const referenceLogprobs = reference.get(sample)!;
    logprobs[i]!.forEach((logprob, token) => {
      sum += estimateKl(kind, logprob, referenceLogprobs[token]!);
    });
    count += referenceLogprobs.length;
  });
  metrics.add("kl/mean", Reduction.mean, count === 0 ? 0 : sum / count, count);
}

/**
 * Largest and mean |logprob when sampled - logprob recomputed|, over the tokens that the weights sampled which are trained now:
 * older tokens of an asynchronous run have other logprobs because the policy has changed.
 * @param step makes its version from the one before.
 */
function addMismatch(
  metrics: MetricSet,
  step: number,
  samples: readonly Sample[],
  scores: SampleScores,
): void {
  let sum = 0;
  let count = 0;
  let largest = 0;
  samples.forEach(({ logprobs, versions }, i) => {
    const recomputed = scores.logprobs[i]!;
    let token = 0;
    for (const { version, tokenCount } of versions) {
      const end = token + tokenCount;
      for (; token < end; token++) {
        if (version !== step - 1) continue;
        const difference = Math.abs(logprobs[token]! - recomputed[token]!);
        sum += difference;
        count++;
        largest = Math.max(largest, difference);
      }
    }
  });
  metrics.add("mismatch/max", Reduction.max, largest);
  metrics.add("mismatch/mean", Reduction.mean, count === 0 ? 0 : sum / count, count);
}

function addTokenFigures(
  metrics: MetricSet,
  figures: Map<PlannedSample["credited"], RolloutFigures>,
  samples: readonly PlannedSample[],
  result: MinibatchResult & { readonly selected: readonly Float32Array[] | undefined },
  objective: PolicyObjective,
): void {
  samples.forEach(({ credited, sample, advantages, oldLogprobs }, i) => {
    const logprobs = result.logprobs[i]!;
    const logRatios = Array.from(logprobs, (logprob, token) => logprob - oldLogprobs[token]!);
    const groupRatios = groupRatiosOf(sample, logRatios, objective);
    const selected = result.selected?.[i];
    const entropies = result.entropies[i]!;
    const figure = figures.get(credited) ?? { tokens: 0, ratioSum: 0, ratioMax: 0, clipped: 0 };
    figures.set(credited, figure);
    let clipped = 0;
    let entropy = 0;
    for (let token = 0; token < logprobs.length; token++) {
      const ratio = Math.exp(logRatios[token]!);
      const cut = objective.cut({
        ratio,
        groupRatio: groupRatios?.[token] ?? ratio,
        logprob: logprobs[token]!,
        behaviourLogprob: oldLogprobs[token]!,
        advantage: advantages[token]!,
        reward: credited.reward,
        isSelected: selected?.[token] === 1,
      });
      if (isCounted(cut)) clipped++;
      figure.ratioSum += ratio;
      figure.ratioMax = Math.max(figure.ratioMax, ratio);
      entropy += entropies[token]!;
    }
    figure.tokens += logprobs.length;
    figure.clipped += clipped;
    const weight = logprobs.length;
    metrics.add("entropy", Reduction.mean, entropy / Math.max(1, weight), weight);
    metrics.add("clip_fraction", Reduction.mean, clipped / Math.max(1, weight), weight);
    metrics.add("ratio/max", Reduction.max, figure.ratioMax);
  });
}

/** [N] the ratio of the tokens that the loss takes together with each; undefined where it takes none together. */
function groupRatiosOf(
  sample: Sample,
  logRatios: readonly number[],
  { group }: PolicyObjective,
): Float64Array | undefined {
  if (group === undefined) return undefined;
  return groupMeans(logRatios, groupsOf([sample], group)).map(Math.exp);
}
