/** Compares the head's entropies with the numbers of verl, in float32, which is what the head computes in. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { headParameter, resolveModelSpec } from "@hone/nn";
import { ENTROPY_CASES, type EntropyCase } from "@hone/rl/testing";
import { Graph, GraphSession } from "@hone/tensor";
import { buildHeadScores } from "./head-loss.ts";

const TOLERANCE = 1e-5;

describe("buildHeadScores()", () => {
  for (const each of ENTROPY_CASES) {
    test(`${each.name}: entropies, and their sum by the weights of tokens`, async () => {
      const found = await entropiesOf(each);
      each.entropies.forEach((entropy, i) => {
        assert.ok(Math.abs(found[i]! - entropy) < TOLERANCE, `${i}: ${found[i]}, expected ${entropy}`);
      });
      const total = found.reduce((sum, entropy, i) => sum + entropy * each.weights[i]!, 0);
      assert.ok(Math.abs(total - each.total) < TOLERANCE * each.total, `${total}, expected ${each.total}`);
    });
  }
});

/** With the identity for a head, the hidden states are the logits. */
async function entropiesOf({ logits }: EntropyCase): Promise<number[]> {
  const size = logits[0]!.length;
  const spec = resolveModelSpec({ vocabSize: size, hiddenSize: size, numLayers: 1, numHeads: 1, headDim: 2 });
  const graph = new Graph("head");
  const identity = Array.from({ length: size * size }, (_, i) => (i % (size + 1) === 0 ? 1 : 0));
  const weights = { [headParameter(spec)]: graph.constant("float32", identity, [size, size]) };
  const read = graph.input("read", "float32", ["positions0", size]);
  const chunks = { count: 1, positions: logits.length };
  const { entropy } = buildHeadScores(graph, spec, { weights, read, temperature: 1, chunks }, false);
  graph.output("entropy", entropy);
  const session = await GraphSession.create(graph, { intraOpThreads: 1 });
  const found = await session.run({
    read: { dtype: "float32", data: Float32Array.from(logits.flat()), shape: [logits.length, size] },
    "choices.0": { dtype: "int32", data: Int32Array.of(0), shape: [1] },
  });
  await session.release();
  return Array.from(found.entropy!.data, Number);
}
