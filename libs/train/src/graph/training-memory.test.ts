import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { resolveLora, resolveModelSpec } from "@hone/nn";
import { planTraining, predictTrainingMemory } from "./training-memory.ts";

const smolLm = resolveModelSpec({
  vocabSize: 49_152,
  hiddenSize: 576,
  numLayers: 30,
  numHeads: 9,
  numKeyValueHeads: 3,
  intermediateSize: 1_536,
});
const MIB = 2 ** 20;

/** Measured peaks of `bench/src/programs/training.ts --shape 135m --together` in steps of several microbatches. */
const MEASURED: readonly [
  rowTokens: number,
  microbatchTokens: number,
  recomputed: number,
  peakMiB: number,
][] = [
  [511, 1_022, 0, 5_506],
  [511, 1_022, 15, 4_416],
  [511, 1_022, 30, 3_511],
  [511, 511, 0, 4_309],
];
const OPERATORS = { sharing: "operators", recomputedLayers: 0 } as const;

describe("predictTrainingMemory()", () => {
  for (const [rowTokens, microbatchTokens, recomputedLayers, peakMiB] of MEASURED) {
    test(`is accurate to a tenth for ${microbatchTokens} tokens and ${recomputedLayers} recomputed layers`, () => {
      const extent = { threads: 2, rowTokens, microbatchTokens };
      const predicted = predictTrainingMemory(smolLm, extent, { sharing: "operators", recomputedLayers });
      const mib = predicted.total / MIB;
      assert.ok(mib > 0.95 * peakMiB && mib < 1.1 * peakMiB, `${mib} MiB`);
    });
  }

  test("counts a row that is longer than a microbatch as a whole", () => {
    const bytes = (microbatchTokens: number) =>
      predictTrainingMemory(smolLm, { threads: 1, rowTokens: 512, microbatchTokens }, OPERATORS).total;
    assert.equal(bytes(1), bytes(512));
    assert.ok(bytes(1_024) > bytes(512));
  });

  test("counts the head only for a chunk of positions", () => {
    const wide = resolveModelSpec({ vocabSize: 151_936, hiddenSize: 64, numLayers: 1, numHeads: 4 });
    const activations = (microbatchTokens: number) =>
      predictTrainingMemory(wide, { threads: 1, rowTokens: 64, microbatchTokens }, OPERATORS).activations;
    assert.ok(activations(4_096) < 1.2 * activations(1_024));
  });
});

describe("predictTrainingMemory() with adapters", () => {
  const extent = { threads: 1, rowTokens: 512, microbatchTokens: 512 };
  const lora = resolveLora({ rank: 16, alpha: 16, targets: "all-linear" });

  test("is accurate to a tenth for the shape of Qwen2.5-0.5B", () => {
    const spec = resolveModelSpec({
      family: "qwen2",
      attentionBias: "inputs",
      vocabSize: 151_936,
      hiddenSize: 896,
      numLayers: 24,
      numHeads: 14,
      numKeyValueHeads: 2,
      intermediateSize: 4_864,
    });
    const asked = { threads: 2, rowTokens: 512, microbatchTokens: 1_024, lora };
    const mib = predictTrainingMemory(spec, asked, OPERATORS).total / MIB;
    // The measured peak of `bench/src/programs/training.ts --shape 0.5b --lora 16 --together`.
    assert.ok(mib > 0.95 * 6_758 && mib < 1.1 * 6_758, `${mib} MiB`);
  });

  test("counts gradients, moments and a reference only for the adapters", () => {
    const whole = predictTrainingMemory(smolLm, { ...extent, hasReference: true }, OPERATORS);
    const adapted = predictTrainingMemory(smolLm, { ...extent, lora, hasReference: true }, OPERATORS);
    assert.equal(whole.reference, whole.weights);
    assert.equal(adapted.weights, whole.weights + adapted.reference);
    assert.equal(adapted.optimizer, 2 * adapted.reference);
    assert.ok(adapted.reference < whole.reference / 20);
    assert.equal(adapted.activations, whole.activations);
    assert.equal(predictTrainingMemory(smolLm, extent, OPERATORS).reference, 0);
  });
});

describe("planTraining()", () => {
  const extent = { threads: 2, rowTokens: 512, microbatchTokens: 1_024 };

  test("small models get a microbatch per thread if they fit, else threads share operators", () => {
    const small = resolveModelSpec({ vocabSize: 4_096, hiddenSize: 256, numLayers: 8, numHeads: 4 });
    assert.equal(planTraining(small, extent, 4_096 * MIB).sharing, "microbatches");
    const plan = planTraining(small, extent, 1_024 * MIB);
    assert.deepEqual([plan.sharing, plan.recomputedLayers], ["operators", 0]);
  });

  test("reserves the predicted activations of the chosen plan for a large model", () => {
    for (const gib of [8, 4]) {
      const { memory, reservedBytes } = planTraining(smolLm, extent, gib * 1_024 * MIB);
      assert.equal(reservedBytes, memory.activations);
    }
    const small = resolveModelSpec({ vocabSize: 4_096, hiddenSize: 256, numLayers: 8, numHeads: 4 });
    assert.equal(planTraining(small, extent, 4_096 * MIB).reservedBytes, 0);
  });

  test("recomputes as few layers of a large model as the memory limit allows", () => {
    const plans = [8, 5, 4, 1].map((gib) => planTraining(smolLm, extent, gib * 1_024 * MIB));
    assert.ok(plans.every(({ sharing }) => sharing === "operators"));
    const [most, five, four, least] = plans.map(({ recomputedLayers }) => recomputedLayers);
    assert.equal(most, 0);
    assert.ok(five! > 0 && five! < four!);
    assert.equal(least, smolLm.numLayers);
    assert.ok(plans[1]!.memory.total <= 5_120 * MIB);
    const oneLess = { ...OPERATORS, recomputedLayers: five! - 1 };
    assert.ok(predictTrainingMemory(smolLm, extent, oneLess).total > 5_120 * MIB);
  });
});
