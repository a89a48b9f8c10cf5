import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { GraphSession } from "@hone/tensor";
import { buildLayersGraph } from "./layers-graph.ts";
import { resolveModelSpec } from "./model/model-spec.ts";
import { initialiseWeights } from "./model/parameters.ts";

const TOKENS = 5;
const MAX_ERROR = 1e-5;

describe("buildLayersGraph()", () => {
  test("weights on the left and on the right side of their products give the same numbers", async () => {
    const spec = resolveModelSpec({
      vocabSize: 13,
      hiddenSize: 48,
      numLayers: 2,
      numHeads: 4,
      numKeyValueHeads: 2,
      attentionBias: "all",
      hasMlpBias: true,
      initializerRange: 0.3,
    });
    const weights = initialiseWeights(spec, 3);
    for (const name of Object.keys(weights).filter((each) => each.endsWith(".bias"))) {
      weights[name]!.forEach((_, i, bias) => {
        bias[i] = Math.sin(i);
      });
    }
    const hidden = Float32Array.from({ length: TOKENS * spec.hiddenSize }, (_, i) => Math.cos(i));
    const run = async (isWeightLeft: boolean) => {
      const session = await GraphSession.create(buildLayersGraph(spec, isWeightLeft), {
        externalData: weights,
      });
      const { last } = await session.run({
        hidden: { dtype: "float32", data: hidden, shape: [1, TOKENS, spec.hiddenSize] },
        positionIds: { dtype: "int32", data: Int32Array.from([0, 1, 2, 3, 4]), shape: [1, TOKENS] },
      });
      await session.release();
      return last!;
    };
    const [left, right] = [await run(true), await run(false)];
    assert.deepEqual(left.shape, [1, TOKENS, spec.hiddenSize]);
    const errors = Array.from(left.data as Float32Array, (value, i) =>
      Math.abs(value - Number(right.data[i])),
    );
    assert.ok(Math.max(...errors) < MAX_ERROR, String(Math.max(...errors)));
    assert.notEqual(left.data[0], 0);
  });
});
