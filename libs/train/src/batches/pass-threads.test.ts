import assert from "node:assert/strict";
import { test } from "node:test";
import { initialiseWeights, resolveModelSpec, shareWeights } from "@hone/nn";
import { eventually } from "@hone/testing";
import { MicrobatchError } from "../errors.ts";
import { planMicrobatches } from "./microbatch.ts";
import { PassRunner } from "./pass-runner.ts";
import { PassThreads } from "./pass-threads.ts";

const spec = resolveModelSpec({ vocabSize: 20, hiddenSize: 8, numLayers: 1, numHeads: 2, headDim: 4 });
const options = {
  session: {},
  maxTokens: 16,
  headChunkValues: undefined,
  rowPieces: 1,
  recomputedLayers: 0,
  reservedBytes: 0,
};
const weights = shareWeights(initialiseWeights(spec, 7));
const { microbatches } = planMicrobatches(
  [
    { tokenIds: [1, 2, 3, 4], lossMask: [0, 0, 1, 1] },
    { tokenIds: [5, 6, 7, 8], lossMask: [0, 1, 1, 1] },
    { tokenIds: [9, 2, 3, 1], lossMask: [0, 1, 0, 1] },
  ],
  { maxRowTokens: 4, maxMicrobatchTokens: 4 },
);
const passes = microbatches.map((batch) => ({
  batch,
  temperature: 1,
  objective: undefined,
  hasSquares: false,
}));

async function all(pool: PassThreads) {
  const results = [];
  for await (const result of pool.run({ weights, quantized: undefined }, passes)) results.push(result);
  return results;
}

test("idle threads end, and the next passes start new threads that give the same results", async () => {
  assert.ok(passes.length > 1);
  const runner = new PassRunner({ spec }, options);
  const expected = [];
  for (const pass of passes) expected.push(await runner.run({ weights, quantized: undefined }, pass));
  await runner.close();
  const pool = new PassThreads({ spec }, options, 2, 1);
  for (let round = 0; round < 2; round++) {
    assert.deepEqual(await all(pool), expected);
    await eventually("the threads to end", () => pool.threadCount === 0);
  }
  await pool.close();
  await assert.rejects(all(pool), MicrobatchError);
});

test("threads stay alive between calls that follow each other closely", async () => {
  const pool = new PassThreads({ spec }, options, 2);
  for (let round = 0; round < 3; round++) await all(pool);
  assert.equal(pool.threadCount, 2);
  await pool.close();
  await assert.rejects(all(pool), MicrobatchError);
});
