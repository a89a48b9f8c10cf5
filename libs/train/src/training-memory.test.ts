import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { resolveModelSpec } from "@hone/nn";
import { chooseSharing, predictTrainingMemory, type ThreadSharing } from "./training-memory.ts";

const smolLm = resolveModelSpec({
  vocabSize: 49_152,
  hiddenSize: 576,
  numLayers: 30,
  numHeads: 9,
  numKeyValueHeads: 3,
  intermediateSize: 1_536,
});
const MIB = 2 ** 20;

/** Peaks of `bench/src/programs/training.ts --shape 135m` with two threads. */
const MEASURED: readonly [ThreadSharing, rowTokens: number, microbatchTokens: number, peakMiB: number][] = [
  ["microbatches", 255, 510, 6_399],
  ["operators", 255, 510, 4_166],
  ["operators", 511, 1_022, 5_940],
];

describe("predictTrainingMemory()", () => {
  for (const [sharing, rowTokens, microbatchTokens, peakMiB] of MEASURED) {
    test(`is right to a tenth for ${microbatchTokens} tokens with shared ${sharing}`, () => {
      const extent = { threads: 2, rowTokens, microbatchTokens };
      const predicted = predictTrainingMemory(smolLm, extent, sharing).total / MIB;
      assert.ok(predicted > 0.95 * peakMiB && predicted < 1.1 * peakMiB, `${predicted} MiB`);
    });
  }

  test("a row that is longer than a microbatch counts whole", () => {
    const bytes = (microbatchTokens: number) =>
      predictTrainingMemory(smolLm, { threads: 1, rowTokens: 512, microbatchTokens }, "operators").total;
    assert.equal(bytes(1), bytes(512));
    assert.ok(bytes(1_024) > bytes(512));
  });
});

describe("chooseSharing()", () => {
  test("gives every thread a microbatch where they fit, else shares operators", () => {
    const extent = { threads: 2, rowTokens: 512, microbatchTokens: 512 };
    const choose = (gib: number) => chooseSharing(smolLm, extent, gib * 1_024 * MIB);
    assert.equal(choose(8).sharing, "microbatches");
    const { sharing, memory } = choose(5);
    assert.equal(sharing, "operators");
    assert.ok(memory.total < 5 * 1_024 * MIB);
  });
});
