/** Training whose forward pass is computed in eight bits. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { initialiseAdapters, initialiseWeights, resolveLora, resolveModelSpec, shareWeights } from "@hone/nn";
import { MAX_QUANTIZED_TOKENS } from "@hone/rl";
import { exactEightBitType } from "@hone/tensor";
import type { TrainingSample } from "./batches/microbatch.ts";
import { GradientRunner, type RunnerOptions } from "./gradient-runner.ts";
import { ThreadSharing } from "./graph/training-memory.ts";

const spec = resolveModelSpec({
  vocabSize: 61,
  hiddenSize: 48,
  numLayers: 3,
  numHeads: 4,
  numKeyValueHeads: 2,
  intermediateSize: 80,
  initializerRange: 0.1,
});
const weights = shareWeights(initialiseWeights(spec, 4));
const random = new Random(6);
const ids = (count: number) => Array.from({ length: count }, () => random.nextInt(61));
const prompt = ids(9);
const samples: TrainingSample[] = Array.from({ length: 12 }, (_, i) => {
  const tokenIds = [...prompt, ...ids(4 + i)];
  const trained = tokenIds.length - prompt.length;
  return {
    tokenIds,
    lossMask: tokenIds.map((_, at) => (at >= prompt.length ? 1 : 0)),
    inputs: {
      behaviourLogprob: new Array<number>(trained).fill(-4),
      advantage: new Array<number>(trained).fill(i % 2 === 0 ? 1 : -1),
    },
    weights: new Array<number>(trained).fill(0.01),
  };
});
const objective = {
  terms: [{ name: "ppo_clip" as const, constants: { clipLow: 0.9, clipHigh: 9 } }],
  entropyCoefficient: 0.01,
};
const type = await exactEightBitType();
const eightBits = { type, hasGradients: false };
const withGradients = { type, hasGradients: true };

async function train(options: Partial<RunnerOptions>) {
  const runner = new GradientRunner(spec, { maxRowTokens: 64, maxMicrobatchTokens: 64, ...options });
  try {
    return await runner.differentiate(weights, samples, objective);
  } finally {
    await runner.close();
  }
}

/** Size of the difference, relative to the size of what is expected. */
function errorOf(found: Float32Array, expected: Float32Array): number {
  const size = (values: Float32Array) => Math.hypot(...values);
  return size(expected.map((value, i) => value - found[i]!)) / size(expected);
}

describe("GradientRunner in eight bits", () => {
  test("finds nearly the scores and the gradients of float32", async () => {
    const [exact, found] = [await train({}), await train({ eightBits })];
    const scoreError = errorOf(Float32Array.from(found.scores), Float32Array.from(exact.scores));
    assert.ok(scoreError > 1e-5 && scoreError < 0.01, `scores: ${scoreError}`);
    const all = ({ gradients }: typeof exact) =>
      Float32Array.from(Object.keys(exact.gradients).flatMap((name) => Array.from(gradients[name]!)));
    const gradientError = errorOf(all(found), all(exact));
    assert.ok(gradientError < 0.06, `gradients: ${gradientError}`);
    const rounded = await train({ eightBits: withGradients });
    assert.deepEqual(rounded.scores, found.scores);
    const roundedError = errorOf(all(rounded), all(found));
    assert.ok(roundedError > 1e-4 && roundedError < 0.04, `gradients in eight bits: ${roundedError}`);
  });

  test("gives the same bits on two threads, and with layers that are computed again", async () => {
    const expected = await train({ eightBits });
    const two = { threads: 2, sharing: ThreadSharing.microbatches };
    const rounded = await train({ eightBits: withGradients });
    for (const options of [two, { recomputedLayers: 2 }]) {
      const found = await train({ eightBits, ...options });
      assert.deepEqual(found.gradients, expected.gradients);
      assert.deepEqual(found.scores, expected.scores);
      const again = await train({ eightBits: withGradients, ...options });
      assert.deepEqual(again.gradients, rounded.gradients);
    }
  });

  test("chunks of the head, the last of which is empty, change rounding only", async () => {
    const expected = await train({ eightBits });
    const found = await train({ eightBits, headChunkValues: 61 * 40 });
    for (const [name, gradient] of Object.entries(expected.gradients)) {
      const error = errorOf(found.gradients[name]!, gradient);
      assert.ok(error < 1e-4, `${name}: ${error}`);
    }
  });

  const halved = Object.fromEntries(
    Object.entries(weights).map(([name, values]) => [name, values.map((value) => value / 2)]),
  );

  test("follows weights that are changed between calls", async () => {
    const runner = new GradientRunner(spec, { maxRowTokens: 64, maxMicrobatchTokens: 64, eightBits });
    const before = await runner.score(weights, samples);
    const other = await runner.score(halved, samples);
    const again = await runner.score(weights, samples);
    await runner.close();
    assert.deepEqual(again.scores, before.scores);
    assert.notDeepEqual(other.scores, before.scores);
  });

  test("differentiates by the weights of the call after others were scored, which leaves out what gradients need", async () => {
    const bounds = { maxRowTokens: 64, maxMicrobatchTokens: 64 };
    const runner = new GradientRunner(spec, { ...bounds, eightBits: withGradients });
    await runner.differentiate(halved, samples, objective);
    await runner.score(weights, samples);
    const found = await runner.differentiate(weights, samples, objective);
    await runner.close();
    assert.deepEqual(found.gradients, (await train({ eightBits: withGradients })).gradients);
  });

  test("differentiates by weights that it was prepared for, and afterwards by what an update made of them", async () => {
    const changing = Object.fromEntries(
      Object.entries(weights).map(([name, values]) => [name, values.slice()]),
    );
    const bounds = { maxRowTokens: 64, maxMicrobatchTokens: 64 };
    const runner = new GradientRunner(spec, { ...bounds, eightBits: withGradients });
    await runner.prepare(changing);
    const before = await runner.score(changing, samples);
    const first = await runner.differentiate(changing, samples, objective);
    for (const [name, values] of Object.entries(halved)) changing[name]!.set(values);
    const second = await runner.differentiate(changing, samples, objective);
    await runner.prepare(changing);
    await runner.score(weights, samples);
    const third = await runner.differentiate(changing, samples, objective);
    await runner.close();
    const expected = await train({ eightBits: withGradients });
    assert.deepEqual(before.scores, expected.scores);
    assert.deepEqual(first.gradients, expected.gradients);
    assert.notDeepEqual(second.gradients, expected.gradients);
    assert.deepEqual(third.gradients, second.gradients);
  });

  test("with adapters, follows other weights of the model and adapters that are changed in place", async () => {
    const lora = resolveLora({ rank: 2, alpha: 4, targets: "all-linear" });
    const adapted = (base: Record<string, Float32Array>, seed: number) => ({
      ...base,
      ...initialiseAdapters(spec, lora, seed),
    });
    const bounds = { maxRowTokens: 64, maxMicrobatchTokens: 64, lora, eightBits: withGradients };
    const kept = new GradientRunner(spec, bounds);
    const gradientsOf = async (runner: GradientRunner, given: Record<string, Float32Array>) =>
      (await runner.differentiate(given, samples, objective)).gradients;
    const ofNew = async (given: Record<string, Float32Array>) => {
      const runner = new GradientRunner(spec, bounds);
      try {
        return await gradientsOf(runner, given);
      } finally {
        await runner.close();
      }
    };
    const first = adapted(weights, 1);
    const other = adapted(halved, 1);
    await kept.score(first, samples);
    for (const given of [first, other, first]) {
      assert.deepEqual(await gradientsOf(kept, given), await ofNew(given));
    }
    for (const [name, values] of Object.entries(initialiseAdapters(spec, lora, 2))) first[name]!.set(values);
    assert.deepEqual(await gradientsOf(kept, first), await ofNew(first));
    await kept.close();
  });

  for (const [layout, hiddenSize] of [
    ["pools", 48],
    ["slots", 256],
  ] as const) {
    test(`scores a sample with the same bits alone and beside others, where contexts lie in ${layout}`, async () => {
      const model = resolveModelSpec({
        vocabSize: 61,
        hiddenSize,
        numLayers: 4,
        numHeads: 4,
        numKeyValueHeads: 2,
        intermediateSize: 512,
        initializerRange: 0.1,
      });
      const modelWeights = shareWeights(initialiseWeights(model, 4));
      const scoresOf = async (
        given: readonly TrainingSample[],
        rowTokens: number,
        bits?: typeof eightBits,
      ) => {
        const bounds = { maxRowTokens: rowTokens, maxMicrobatchTokens: rowTokens };
        const runner = new GradientRunner(model, { ...bounds, eightBits: bits });
        const { scores } = await runner.score(modelWeights, given);
        await runner.close();
        return Array.from(scores);
      };
      // A long context, and trees whose tokens are at other places of the row than at their positions.
      const first = samples[0]!;
      const long = ids(1_300);
      const trained = first.weights.length;
      const lossMask = long.map((_, at) => (at >= long.length - trained ? 1 : 0));
      const others = samples.map((sample) => ({
        ...sample,
        tokenIds: Array.from(sample.tokenIds).reverse(),
      }));
      const all = [...samples, ...others, { ...first, tokenIds: long, lossMask }];
      const together = await scoresOf(all, 2_048, eightBits);
      const alone: number[] = [];
      for (const sample of all) alone.push(...(await scoresOf([sample], sample.tokenIds.length, eightBits)));
      assert.deepEqual(together, alone);
      const inFloat = await scoresOf(all, 2_048);
      const error = errorOf(Float32Array.from(together), Float32Array.from(inFloat));
      assert.ok(error > 1e-4 && error < 0.05, `${error}`);
    });
  }

  test("refuses a sample over whose tokens gradients in eight bits cannot be added up", async () => {
    const [first] = samples;
    const length = MAX_QUANTIZED_TOKENS + 2; // the last token is not computed
    const tokenIds = new Array<number>(length).fill(1);
    const lossMask = tokenIds.map((_, at) => (at >= length - first!.weights.length ? 1 : 0));
    const runner = new GradientRunner(spec, {
      maxRowTokens: 64,
      maxMicrobatchTokens: 64,
      eightBits: withGradients,
    });
    try {
      await assert.rejects(runner.differentiate(weights, [{ ...first!, tokenIds, lossMask }], objective), {
        code: "TRAINING_INPUT",
        message: /a pass of 65537 tokens, .* at most 65536/,
      });
    } finally {
      await runner.close();
    }
  });
});
