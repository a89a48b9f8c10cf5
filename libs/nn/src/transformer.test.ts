import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Graph, GraphSession } from "@hone/tensor";
import { packedAttend } from "./attention/packed-attention.ts";
import { resolveModelSpec } from "./model/model-spec.ts";
import { initialiseWeights, listParameters } from "./model/parameters.ts";
import { buildHead, buildTransformer, weightInitializers, weightInputs } from "./transformer.ts";

const spec = resolveModelSpec({
  vocabSize: 13,
  hiddenSize: 16,
  numLayers: 2,
  numHeads: 4,
  numKeyValueHeads: 2,
  headDim: 8,
  initializerRange: 0.2,
});

/** Logits for rows of tokens; each row is one sequence. */
async function logitsOf(rows: readonly (readonly number[])[], weightsAre: "inputs" | "initializers") {
  const graph = new Graph("logits");
  const tokenIds = graph.input("tokenIds", "int64", ["rows", "tokens"]);
  const positionIds = graph.input("positionIds", "int64", ["rows", "tokens"]);
  const visibleEnd = graph.input("visibleEnd", "int64", ["rows", "tokens"]);
  const weights = (weightsAre === "inputs" ? weightInputs : weightInitializers)(graph, listParameters(spec));
  const attend = packedAttend(graph, spec, [visibleEnd]);
  const hidden = buildTransformer(graph, spec, { tokenIds, positionIds, weights, attend });
  graph.output("logits", buildHead(spec, hidden, weights));
  const values = initialiseWeights(spec, 5);
  const session = await GraphSession.create(
    graph,
    weightsAre === "initializers" ? { externalData: values } : {},
  );
  const length = rows[0]!.length;
  const shape = [rows.length, length];
  const int64 = (at: (row: readonly number[], i: number) => number) => ({
    dtype: "int64" as const,
    shape,
    data: BigInt64Array.from(rows.flatMap((row) => row.map((_, i) => BigInt(at(row, i))))),
  });
  const feeds = Object.fromEntries(
    listParameters(spec).map((p) => [
      p.name,
      { dtype: "float32" as const, data: values[p.name]!, shape: p.shape },
    ]),
  );
  const { logits } = await session.run({
    ...feeds,
    tokenIds: int64((row, i) => row[i]!),
    positionIds: int64((_, i) => i),
    visibleEnd: int64(() => length),
  });
  await session.release();
  return logits!;
}

describe("buildTransformer()", () => {
  test("a token does not change the logits of earlier tokens", async () => {
    const a = await logitsOf([[1, 2, 3, 4, 5]], "inputs");
    const b = await logitsOf([[1, 2, 3, 9, 5]], "inputs");
    assert.deepEqual(a.shape, [1, 5, spec.vocabSize]);
    const kept = 3 * spec.vocabSize;
    assert.deepEqual(a.data.slice(0, kept), b.data.slice(0, kept));
    assert.notDeepEqual(a.data.slice(kept), b.data.slice(kept));
  });

  test("weights as inputs and as initializers give the same bits for small models", async () => {
    const rows = [
      [1, 2, 3, 4],
      [5, 6, 7, 8],
    ];
    const fed = await logitsOf(rows, "inputs");
    const packed = await logitsOf(rows, "initializers");
    assert.deepEqual(fed.data, packed.data);
  });

  test("a row does not depend on other rows", async () => {
    const both = await logitsOf(
      [
        [1, 2, 3, 4],
        [5, 6, 7, 8],
      ],
      "inputs",
    );
    const one = await logitsOf([[5, 6, 7, 8]], "inputs");
    assert.deepEqual(both.data.slice(4 * spec.vocabSize), one.data);
  });
});
