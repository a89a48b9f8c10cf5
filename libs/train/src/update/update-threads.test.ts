import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { initialiseAdamW } from "@hone/checkpoint";
import { Random } from "@hone/core";
import { initialiseWeights, listParameters, resolveModelSpec, shareWeights } from "@hone/nn";
import { UpdateError } from "../errors.ts";
import { ADAMW_DEFAULTS } from "./adamw.ts";
import { UpdateThreads } from "./update-threads.ts";

const spec = resolveModelSpec({ vocabSize: 24, hiddenSize: 8, numLayers: 2, numHeads: 2 });
const parameters = listParameters(spec);
const options = { ...ADAMW_DEFAULTS, learningRate: 0.01, weightDecay: 0.1 };

/** Makes two steps from the same start; even the smallest work is shared between threads. */
async function run(threads: number) {
  const random = new Random(3);
  const weights = shareWeights(initialiseWeights(spec, 1));
  const state = initialiseAdamW(parameters);
  const updates = new UpdateThreads(threads, 0);
  const draw = () =>
    Object.fromEntries(
      Object.entries(weights).map(([name, values]) => [name, values.map(() => random.next() - 0.5).slice()]),
    );
  const norms: number[] = [];
  try {
    for (let step = 0; step < 2; step++) {
      const sums: Record<string, Float32Array> = {};
      for (let part = 0; part < 3; part++) await updates.add(sums, draw());
      norms.push(await updates.norm(sums));
      await updates.update(parameters, weights, sums, state, options, 0.5);
    }
  } finally {
    await updates.close();
  }
  return { weights, state, norms };
}

describe("UpdateThreads", () => {
  test("sums, norms and updates have the same bits on any number of threads", async () => {
    const alone = await run(1);
    assert.equal(alone.state.step, 2);
    for (const threads of [2, 3]) assert.deepEqual(await run(threads), alone);
  });

  test("the norm is that of all gradients together", async () => {
    const updates = new UpdateThreads(1);
    const gradients = { a: Float32Array.of(3, 0, 0, 0, 2, 2), b: Float32Array.of(4, 4) };
    assert.equal(await updates.norm(gradients), 7);
    await updates.close();
  });

  test("a failure in a thread fails the call, and closed threads accept no calls", async () => {
    const updates = new UpdateThreads(2, 0);
    const gradients = () => ({ a: new Float32Array(2), b: new Float32Array(1) });
    const trained = ["a", "b"].map((name) => ({ name, shape: [1], kind: "matrix" as const }));
    const state = initialiseAdamW(trained);
    // The calling thread gets the larger parameter; the weight of the other one is missing.
    const broken = updates.update(trained, { a: new Float32Array(2) }, gradients(), state, options);
    await assert.rejects(broken, UpdateError);
    assert.equal(state.step, 0);
    assert.equal(await updates.norm(gradients()), 0);
    await updates.close();
    await assert.rejects(updates.norm(gradients()), /closed/);
  });
});
