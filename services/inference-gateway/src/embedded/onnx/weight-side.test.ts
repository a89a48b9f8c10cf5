import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { measureSides, type SideTimes, WeightSides } from "./weight-side.ts";

const spec = resolveModelSpec({ vocabSize: 20, hiddenSize: 16, numLayers: 2, numHeads: 2 });
const wider = resolveModelSpec({ vocabSize: 20, hiddenSize: 32, numLayers: 2, numHeads: 2 });
const weights = initialiseWeights(spec, 4);
const threads = { intraOpThreads: 1, spinUs: 0 };

function sidesThat(...times: (SideTimes | Error)[]): WeightSides {
  return new WeightSides(async () => {
    const next = times.shift();
    assert.ok(next !== undefined, "measured too often");
    if (next instanceof Error) throw next;
    return next;
  });
}

describe("WeightSides", () => {
  test("packs weights only if that is faster by more than the measurements differ", async () => {
    assert.equal(await sidesThat({ left: 10, right: 20 }).isLeft(spec, weights, threads), true);
    assert.equal(await sidesThat({ left: 10, right: 9.8 }).isLeft(spec, weights, threads), true);
    assert.equal(await sidesThat({ left: 10, right: 9 }).isLeft(spec, weights, threads), false);
  });

  test("measures each shape once, whatever its number of layers is", async () => {
    const sides = sidesThat({ left: 10, right: 5 }, { left: 5, right: 10 });
    const both = [spec, { ...spec, numLayers: 1 }].map((one) => sides.isLeft(one, weights, threads));
    assert.deepEqual(await Promise.all(both), [false, false]);
    assert.equal(await sides.isLeft(wider, initialiseWeights(wider, 4), threads), true);
    assert.equal(await sides.isLeft(spec, weights, threads), false);
  });

  test("measures again after a failure", async () => {
    const sides = sidesThat(new Error("no memory"), { left: 10, right: 5 });
    await assert.rejects(sides.isLeft(spec, weights, threads), /no memory/);
    assert.equal(await sides.isLeft(spec, weights, threads), false);
  });
});

describe("measureSides()", () => {
  test("times both sides of a real model", async () => {
    const { left, right } = await measureSides(spec, weights, threads);
    assert.ok(left > 0 && Number.isFinite(left), String(left));
    assert.ok(right > 0 && Number.isFinite(right), String(right));
  });
});
