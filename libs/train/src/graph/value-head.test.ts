import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { initialiseWeights, resolveModelSpec, VALUE_BIAS, VALUE_HEAD, type Weights } from "@hone/nn";
import { valueTerm } from "@hone/rl";
import type { TrainingSample } from "../batches/microbatch.ts";
import { GradientRunner } from "../gradient-runner.ts";

const spec = resolveModelSpec({
  head: "value",
  vocabSize: 16,
  hiddenSize: 8,
  numLayers: 2,
  numHeads: 2,
  headDim: 4,
  initializerRange: 0.3,
});
const STEP = 3e-3;

/** Samples that share a prompt, so that they become branches of one row, with every second of the last tokens trained. */
function samplesOf(count: number): TrainingSample[] {
  const random = new Random(11);
  return Array.from({ length: count }, () => {
    const tokenIds = Array.from({ length: 10 }, (_, i) => (i < 4 ? i : random.nextInt(16)));
    const perToken = (value: () => number) => Float32Array.from({ length: 3 }, value);
    return {
      tokenIds,
      lossMask: tokenIds.map((_, i) => Number((i > 4 && i % 2 === 0) || i === 5)),
      inputs: { oldValue: perToken(() => random.next() - 0.5), return: perToken(() => 2 * random.next()) },
      weights: perToken(() => 1 / (3 * count)),
    };
  });
}

const OBJECTIVE = { terms: [valueTerm({ clip: 0.4 })], entropyCoefficient: 0 };
const samples = samplesOf(5);

async function withRunner<T>(
  use: (runner: GradientRunner) => Promise<T>,
  { maxRowTokens = 64, maxMicrobatchTokens = 128, recomputedLayers = 0 } = {},
): Promise<T> {
  const runner = new GradientRunner(spec, { maxRowTokens, maxMicrobatchTokens, recomputedLayers });
  try {
    return await use(runner);
  } finally {
    await runner.close();
  }
}

describe("a value head", () => {
  const weights = initialiseWeights(spec, 7);

  test("gives each trained token one value, which is 0 everywhere with a head of zeros", async () => {
    const { scores, entropies } = await withRunner((runner) => runner.score(weights, samples));
    assert.equal(scores.length, 15);
    assert.ok(new Set(scores).size > 5, "values of different tokens differ");
    assert.deepEqual(new Set(entropies), new Set([0]));
    const zeros = { ...weights, [VALUE_HEAD]: new Float32Array(8), [VALUE_BIAS]: new Float32Array(1) };
    const none = await withRunner((runner) => runner.score(zeros, samples));
    assert.deepEqual(new Set(none.scores), new Set([0]));
  });

  test("has the gradient of its loss, in the head, the layers and the embedding", async () => {
    await withRunner(async (runner) => {
      const { gradients, loss } = await runner.differentiate(weights, samples, OBJECTIVE);
      const lossOf = async (changed: Weights) =>
        (await runner.differentiate(changed, samples, OBJECTIVE)).loss;
      assert.equal(await lossOf(weights), loss);
      for (const [name, gradient] of Object.entries(gradients)) {
        const at = gradient.reduce(
          (best, value, i) => (Math.abs(value) > Math.abs(gradient[best]!) ? i : best),
          0,
        );
        const moved = async (by: number) => {
          const values = Float32Array.from(weights[name]!);
          values[at]! += by;
          return lossOf({ ...weights, [name]: values });
        };
        const slope = ((await moved(STEP)) - (await moved(-STEP))) / (2 * STEP);
        const distance = Math.abs(slope - gradient[at]!);
        assert.ok(
          distance < 0.01 * Math.abs(slope) + 1e-4,
          `${name}: ${gradient[at]}, and by steps ${slope}`,
        );
      }
    });
  });

  test("has the same gradient for branches of a row, separate rows and recomputed layers", async () => {
    const find = (limits: object) =>
      withRunner((runner) => runner.differentiate(weights, samples, OBJECTIVE), limits);
    const [packed, apart, recomputed] = [
      await find({}),
      await find({ maxRowTokens: 10, maxMicrobatchTokens: 10 }),
      await find({ recomputedLayers: 2 }),
    ];
    assert.ok(packed.packedTokenCount < apart.packedTokenCount, "the shared prompt was computed once");
    for (const other of [apart, recomputed]) {
      for (const [name, gradient] of Object.entries(packed.gradients)) {
        gradient.forEach((value, i) => {
          assert.ok(Math.abs(value - other.gradients[name]![i]!) < 1e-5, name);
        });
      }
    }
  });

  test("refuses a loss of a policy, and a policy's head that of a critic", async () => {
    const policyTerms = [{ name: "cross_entropy", constants: {} }] as const;
    await withRunner(async (runner) => {
      await assert.rejects(
        runner.differentiate(weights, samples, { terms: policyTerms, entropyCoefficient: 0 }),
        /"cross_entropy" is a function of a logprob, but the model has a value head/,
      );
    });
    const language = new GradientRunner(resolveModelSpec({ ...spec, head: "language" }), {
      maxRowTokens: 64,
      maxMicrobatchTokens: 128,
    });
    await assert.rejects(
      language.differentiate(weights, samples, OBJECTIVE),
      /"value" is a function of a value, but the model has a language head/,
    );
    await language.close();
  });
});
