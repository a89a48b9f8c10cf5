import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { resolveModelSpec } from "@hone/nn";
import { workOf } from "./model-work.ts";

describe("workOf()", () => {
  test("counts the matrices of SmolLM2-135M, including the tied head", () => {
    const work = workOf(
      resolveModelSpec({
        family: "llama",
        vocabSize: 49_152,
        hiddenSize: 576,
        numLayers: 30,
        numHeads: 9,
        numKeyValueHeads: 3,
        intermediateSize: 1_536,
      }),
    );
    // A layer: queries and outputs 2 x 576 x 576, keys and values 2 x 576 x 192, three of 576 x 1,536.
    const body = 30 * (2 * 576 * 576 + 2 * 576 * 192 + 3 * 576 * 1_536);
    const head = 49_152 * 576;
    assert.equal(work.readToken, 2 * body);
    assert.equal(work.generatedToken, 2 * (body + head));
    assert.equal(work.carriedToken, 6 * body);
    assert.equal((work.trainedToken / 1e9).toFixed(2), "0.81");
  });
});
