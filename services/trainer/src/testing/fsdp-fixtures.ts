/**
 * Fixtures for tests of FSDP2: small models, batches of every kind, and gradients as the port shows them.
 *
 * Gradients are measured through the port: with both betas 0, a large epsilon and a rate of 1000 epsilons, an update moves
 * a weight by 1000 g (1 - |g| / epsilon).
 */

import path from "node:path";
import { inspectModel, loadAdapter, loadModel } from "@hone/checkpoint";
import { Random } from "@hone/core";
import { resolveLora, resolveModelSpec } from "@hone/nn";
import { IMITATION_TERMS } from "@hone/rl";
import type { TrainingSample } from "@hone/train";
import type { Minibatch, TrainingEngine } from "../domain/step/training-engine.ts";
import type { EngineConfig } from "../engine/engine-config.ts";

const EPSILON = 1e6;
const GAIN = 1_000;

const PRETRAINED = path.join(
  import.meta.dirname,
  "../../../../libs/checkpoint/fixtures/families/llama-scaled-biased",
);
const VOCABULARY = 16;
/** Small limits, so that some batches give more microbatches than ranks and others fewer. */
const LIMITS = { maxRowTokens: 24, maxMicrobatchTokens: 48 };

/** A model of which all weights are trained. */
export const whole: EngineConfig = {
  ...LIMITS,
  spec: resolveModelSpec({
    vocabSize: VOCABULARY,
    hiddenSize: 16,
    numLayers: 2,
    numHeads: 4,
    numKeyValueHeads: 2,
    headDim: 4,
    initializerRange: 0.2,
  }),
  start: { kind: "fresh", seed: 3 },
  companions: {},
};
const inspected = await inspectModel(PRETRAINED);
/** A checkpoint with adapters. */
export const adapted: EngineConfig = {
  ...LIMITS,
  ...inspected,
  start: { kind: "checkpoint", folder: PRETRAINED },
  companions: {},
  adapters: {
    lora: resolveLora({ rank: 2, alpha: 8, targets: "all-linear" }),
    seed: 4,
    basePlace: PRETRAINED,
    exportedBase: { place: PRETRAINED },
  },
};

/** Conversations of one group and of different lengths: a shared prompt and two trained turns with a user's turn between. */
function samplesOf(seed: number, count: number): TrainingSample[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => {
    const lengths = [2 + random.nextInt(3), 2, 1 + random.nextInt(4)];
    const lossMask = [0, 0, 0, 0, 0, ...[1, 0, 1].flatMap((mask, i) => Array(lengths[i]!).fill(mask))];
    const tokenIds = lossMask.map((_, i) => (i < 5 ? i + 1 : random.nextInt(4)));
    const trained = lossMask.filter((mask) => mask === 1).length;
    const numbers = (value: () => number) => Array.from({ length: trained }, value);
    return {
      tokenIds,
      lossMask,
      inputs: {
        behaviourLogprob: numbers(() => -3 + random.next()),
        referenceLogprob: numbers(() => -3 + random.next()),
        advantage: numbers(() => 2 * random.next() - 1),
        selected: numbers(() => random.nextInt(2)),
        reward: Array<number>(trained).fill(random.next() - 0.5),
      },
      weights: numbers(() => 1 / (trained * count)),
    };
  });
}

const NEUTRAL = { learningRate: 0, beta1: 0, beta2: 0, epsilon: 1, weightDecay: 0 };
const base = { entropyCoefficient: 0, optimizer: NEUTRAL, maxGradNorm: 1e9 };
export const BATCHES: Readonly<Record<string, Minibatch>> = {
  "a clipped ratio with entropy and KL": {
    ...base,
    samples: samplesOf(1, 9),
    terms: [
      { name: "ppo_clip", constants: { clipLow: 0.2, clipHigh: 0.28, dualClip: 3 } },
      { name: "kl_k3", constants: { coefficient: 0.1 } },
    ],
    entropyCoefficient: 0.02,
    temperature: 0.8,
  },
  "fewer microbatches than ranks": {
    ...base,
    samples: samplesOf(2, 1),
    terms: [
      { name: "ppo_clip", constants: { clipLow: 0.2, clipHigh: 0.28 } },
      { name: "kl_k2", constants: { coefficient: 0.1 } },
    ],
  },
  // Each loss once, with bounds that some of the ratios are beyond. A sum keeps the number of updates small.
  "losses of single tokens": {
    ...base,
    samples: samplesOf(4, 7),
    terms: [
      { name: "sapo", constants: { tauPositive: 1, tauNegative: 1.05 } },
      { name: "cispo", constants: { clipLow: 0.2, clipHigh: 0.28, mask: 1 } },
      { name: "dppo_tv", constants: { thresholdLow: 0.02, thresholdHigh: 0.02, maxRatio: 1.5 } },
      { name: "dppo_kl", constants: { thresholdLow: 0.01, thresholdHigh: 0.01, maxRatio: 1.5 } },
      { name: "dro", constants: { beta: 0.5 } },
      { name: "topr", constants: { positiveWeight: 1, negativeWeight: 0.5 } },
      { name: "tis", constants: { lower: 0.5, upper: 1.2 } },
      { name: "kimi15", constants: { tau: 0.5 } },
      { name: "reinforce", constants: {} },
      { name: "gpg", constants: {} },
    ],
  },
  "losses that take tokens together or choose them": {
    ...base,
    samples: samplesOf(5, 7),
    terms: [
      { name: "gspo", constants: { clipLow: 0.3, clipHigh: 0.3 } },
      { name: "gmpo", constants: { clipLow: 0.2, clipHigh: 0.2 } },
      { name: "ppo_clip", constants: { clipLow: 0.2, clipHigh: 0.28, bySegment: 1 } },
      {
        name: "clip_cov",
        constants: { clipLow: 0.2, clipHigh: 0.2, share: 1, covarianceLow: 0, covarianceHigh: 9 },
      },
      { name: "kl_cov", constants: { share: 1, coefficient: 0.5 } },
      { name: "kl_abs", constants: { coefficient: 0.1 } },
      { name: "kl_k3", constants: { coefficient: 0.1, straightThrough: 1 } },
    ],
  },
  imitation: { ...base, samples: samplesOf(3, 6), terms: IMITATION_TERMS },
};

/** Weights or gradients by their names. */
export type Values = Readonly<Record<string, Float32Array>>;

/** The trained weights of an engine. @param folder where it exports them */
export async function weightsOf(
  engine: TrainingEngine,
  config: EngineConfig,
  folder: string,
): Promise<Values> {
  await engine.saveWeights(folder);
  return config.adapters === undefined
    ? (await loadModel(folder)).weights
    : (await loadAdapter(folder, config.spec)).weights;
}

/** What an engine computes for a batch. */
export interface Found {
  readonly loss: number;
  readonly gradNorm: number;
  readonly logprobs: readonly Float32Array[];
  readonly entropies: readonly Float32Array[];
  readonly gradients: Values;
}

/** What an engine computes for a batch at its first weights, which are restored afterwards. */
export async function differentiate(
  engine: TrainingEngine,
  config: EngineConfig,
  batch: Minibatch,
  folder: string,
): Promise<Found> {
  const start = path.join(folder, "start");
  const before = await weightsOf(engine, config, start);
  const optimizer = { ...NEUTRAL, learningRate: GAIN * EPSILON, epsilon: EPSILON };
  const found = await engine.trainMinibatch({ ...batch, optimizer });
  const after = await weightsOf(engine, config, path.join(folder, "moved"));
  await engine.load(start);
  const gradients = Object.fromEntries(
    Object.entries(before).map(([name, values]) => [
      name,
      values.map((value, i) => (value - after[name]![i]!) / GAIN),
    ]),
  );
  return { ...found, gradients };
}

/** Ordinary updates, in which the optimizer's moments matter. */
export function updates(count: number): Minibatch[] {
  const optimizer = { learningRate: 0.01, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0.1 };
  return Array.from({ length: count }, (_, i) => ({
    ...BATCHES["a clipped ratio with entropy and KL"]!,
    samples: samplesOf(10 + i, 6),
    optimizer,
    maxGradNorm: 0.5,
  }));
}
