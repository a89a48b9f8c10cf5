import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { resolveModelSpec } from "@hone/nn";
import { packCheapest, rowCostOf } from "./row-length.ts";

/** The cost for SmolLM2-135M. */
const COST = rowCostOf(
  resolveModelSpec({
    vocabSize: 49_152,
    hiddenSize: 576,
    numLayers: 30,
    numHeads: 9,
    numKeyValueHeads: 3,
    intermediateSize: 1_536,
  }),
);
const LENGTHS = { from: 128, to: 1_024 };

/** Groups of answers; the answers of each group share a prompt. */
function groups(count: number, samples: number, promptTokens: number, answerTokens: number) {
  const random = new Random(1);
  const ids = (length: number) => Array.from({ length }, () => random.nextInt(49_152));
  return Array.from({ length: count }, () => ids(promptTokens)).flatMap((prompt) =>
    Array.from({ length: samples }, () => ({
      tokenIds: [...prompt, ...ids(answerTokens)],
      lossMask: [...prompt.map(() => 0), ...Array.from({ length: answerTokens }, () => 1)],
    })),
  );
}

describe("packCheapest()", () => {
  test("chooses rows that hold a whole group, so that its prompt is computed once", () => {
    const { rowCount, rowTokens, packedTokenCount } = packCheapest(groups(4, 8, 110, 64), LENGTHS, COST);
    // The last token of an answer is predicted and not computed.
    assert.deepEqual([rowCount, rowTokens, packedTokenCount], [4, 110 + 8 * 63, 4 * (110 + 8 * 63)]);
  });

  test("chooses short rows if no prompts are shared", () => {
    const packed = packCheapest(groups(32, 1, 100, 28), LENGTHS, COST);
    assert.deepEqual([packed.rowCount, packed.rowTokens], [32, 127]);
  });

  test("chooses short rows if attention costs more than sharing saves", () => {
    const packed = packCheapest(groups(4, 8, 64, 64), LENGTHS, { perToken: 1, perPair: 1 });
    assert.equal(packed.rowTokens, 127);
  });

  test("does not exceed the longest limit if a group does not fit", () => {
    const { rowTokens } = packCheapest(groups(2, 32, 300, 64), LENGTHS, COST);
    assert.ok(rowTokens > 300 && rowTokens <= LENGTHS.to, String(rowTokens));
  });
});
