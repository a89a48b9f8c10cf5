/** Each loss gives the same value and gradient however its samples are packed, for a whole model and for adapters. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { initialiseAdapters, initialiseWeights, resolveLora, resolveModelSpec } from "@hone/nn";
import { groupsOf, type LossName, type LossTerm, POLICY_LOSSES } from "@hone/rl";
import type { TrainingSample } from "../batches/microbatch.ts";
import { GradientRunner, type LossAndGradients, type RunnerOptions } from "../gradient-runner.ts";

const VOCABULARY = 16;
const spec = resolveModelSpec({
  vocabSize: VOCABULARY,
  hiddenSize: 16,
  numLayers: 2,
  numHeads: 4,
  numKeyValueHeads: 2,
  headDim: 4,
  initializerRange: 0.3,
});
const lora = resolveLora({ rank: 2, alpha: 4, targets: "all-linear" });

/** Bounds that some ratios of the samples are beyond, and others within. */
const TERMS: readonly LossTerm<LossName>[] = [
  { name: "ppo_clip", constants: { clipLow: 0.2, clipHigh: 0.28, dualClip: 3 } },
  { name: "ppo_clip", constants: { clipLow: 0.2, clipHigh: 0.28, bySegment: 1 } },
  { name: "gspo", constants: { clipLow: 0.3, clipHigh: 0.3 } },
  { name: "gmpo", constants: { clipLow: 0.2, clipHigh: 0.2 } },
  { name: "sapo", constants: { tauPositive: 1, tauNegative: 1.05 } },
  { name: "cispo", constants: { clipLow: 0.2, clipHigh: 0.28, mask: 1 } },
  { name: "cispo", constants: { clipLow: 0.2, clipHigh: 0.28, bySegment: 1 } },
  { name: "dppo_tv", constants: { thresholdLow: 0.02, thresholdHigh: 0.02, maxRatio: 1.5 } },
  { name: "dppo_kl", constants: { thresholdLow: 0.01, thresholdHigh: 0.01, maxRatio: 1.5 } },
  { name: "dro", constants: { beta: 0.5 } },
  { name: "gpg", constants: {} },
  {
    name: "clip_cov",
    constants: { clipLow: 0.2, clipHigh: 0.2, share: 0.5, covarianceLow: 0, covarianceHigh: 9 },
  },
  { name: "kl_cov", constants: { share: 0.2, coefficient: 1 } },
  { name: "topr", constants: { positiveWeight: 1, negativeWeight: 0.5 } },
  { name: "topr", constants: { positiveWeight: 1, negativeWeight: 0.5, bySegment: 1 } },
  { name: "tis", constants: { lower: 0.5, upper: 1.2 } },
  { name: "tis", constants: { lower: 0.5, upper: 1.2, bySegment: 1 } },
  { name: "kimi15", constants: { tau: 0.5 } },
  { name: "reinforce", constants: {} },
  {
    name: "module",
    constants: {},
    expression: ["divide", ["multiply", "logprob", "advantage"], ["exp", -1]],
  },
  ...["kl_k1", "kl_abs", "kl_k2", "kl_k3"].map((name) => ({
    name: name as LossName,
    constants: { coefficient: 0.5 },
  })),
  { name: "kl_k3", constants: { coefficient: 0.5, straightThrough: 1 } },
];

/** Two groups with a prompt of their own; some answers begin alike, and each has two turns. */
function samplesOf(random: Random): TrainingSample[] {
  return Array.from({ length: 8 }, (_, index) => {
    const turns = [1 + random.nextInt(3), 1 + random.nextInt(4)];
    const lossMask = [
      0,
      0,
      0,
      ...[1, 0, 1].flatMap((bit, i) => Array<number>(i === 1 ? 2 : turns[i >> 1]!).fill(bit)),
    ];
    const tokenIds = lossMask.map((_, i) => (i < 3 ? 1 + i + 4 * (index % 2) : random.nextInt(3)));
    const count = turns[0]! + turns[1]!;
    const numbers = (value: () => number) => Array.from({ length: count }, value);
    const reward = random.next() - 0.5;
    return {
      tokenIds,
      lossMask,
      inputs: {
        behaviourLogprob: numbers(() => -3.3 + random.next()),
        referenceLogprob: numbers(() => -3.3 + random.next()),
        advantage: numbers(() => 2 * random.next() - 1),
        selected: numbers(() => random.nextInt(2)),
        reward: numbers(() => reward),
      },
      weights: numbers(() => 1 / (8 * count)),
    };
  });
}

const samples = samplesOf(new Random(5));

/** Prefix trees in one row; in rows of several microbatches; a head in chunks that cut samples, some of them empty. */
const PACKINGS: readonly Partial<RunnerOptions>[] = [
  {},
  { maxRowTokens: 20, maxMicrobatchTokens: 40, rowPieces: 2, recomputedLayers: 1 },
  { maxRowTokens: 40, maxMicrobatchTokens: 40, headChunkValues: 8 * VOCABULARY },
];
/** A row and a microbatch for each sample. */
const ALONE = { maxRowTokens: 1, maxMicrobatchTokens: 1 };

const values = new Random(6);
const whole = initialiseWeights(spec, 2);
const adapted = { ...whole, ...initialiseAdapters(spec, lora, 3) };
for (const [name, each] of Object.entries(adapted)) {
  if (name.includes("lora_B")) each.set(each.map(() => values.next() - 0.5));
}

async function differentiate(
  terms: readonly LossTerm<LossName>[],
  options: Partial<RunnerOptions>,
): Promise<LossAndGradients> {
  const runner = new GradientRunner(spec, { maxRowTokens: 64, maxMicrobatchTokens: 128, ...options });
  try {
    const objective = { terms, entropyCoefficient: 0.01 };
    return await runner.differentiate(options.lora === undefined ? whole : adapted, samples, objective);
  } finally {
    await runner.close();
  }
}

function assertSame(found: LossAndGradients, expected: LossAndGradients): void {
  assert.ok(Math.abs(found.loss - expected.loss) < 1e-5, `loss ${found.loss}, expected ${expected.loss}`);
  for (const [name, gradient] of Object.entries(expected.gradients)) {
    const largest = gradient.reduce((max, value) => Math.max(max, Math.abs(value)), 1e-3);
    gradient.forEach((value, i) => {
      const error = Math.abs(found.gradients[name]![i]! - value);
      assert.ok(error < 1e-4 * largest, `${name}[${i}]: ${found.gradients[name]![i]}, expected ${value}`);
    });
  }
}

describe("losses on batches", () => {
  test("each loss is tried", () => {
    const tried = new Set(TERMS.map(({ name }) => name));
    assert.deepEqual(
      Object.keys(POLICY_LOSSES).filter((name) => !tried.has(name as LossName)),
      [],
    );
    assert.ok(groupsOf(samples, "segment").at(-1)! > samples.length, "samples have several segments");
  });

  for (const term of TERMS) {
    test(`${term.name} ${JSON.stringify(term.constants)}`, async () => {
      for (const options of [{}, { lora }]) {
        const alone = await differentiate([term], { ...ALONE, ...options });
        for (const packing of PACKINGS) {
          assertSame(await differentiate([term], { ...packing, ...options }), alone);
        }
      }
    });
  }
});
