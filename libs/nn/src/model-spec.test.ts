import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ModelSpecError } from "./errors.ts";
import { configFromSpec, resolveModelSpec, specFromConfig } from "./model-spec.ts";

const small = { vocabSize: 10, hiddenSize: 16, numLayers: 2, numHeads: 4 };

describe("resolveModelSpec()", () => {
  test("fills in what a small description leaves out", () => {
    const spec = resolveModelSpec(small);
    assert.equal(spec.numKeyValueHeads, 4);
    assert.equal(spec.headDim, 4);
    assert.equal(spec.intermediateSize, 48);
    assert.equal(spec.initializerRange, 0.25);
  });

  test("names the field that is wrong", () => {
    const wrong = [
      { ...small, numLayers: 0 },
      { ...small, headDim: 5 },
      { ...small, numKeyValueHeads: 3 },
      { ...small, rmsNormEps: 0 },
      { ...small, eosTokenIds: [10] },
    ];
    const fields = wrong.map((input) => {
      try {
        resolveModelSpec(input);
        return "accepted";
      } catch (error) {
        return error instanceof ModelSpecError ? error.field : String(error);
      }
    });
    assert.deepEqual(fields, ["numLayers", "headDim", "numKeyValueHeads", "rmsNormEps", "tokenId"]);
  });
});

describe("specFromConfig()", () => {
  const spec = resolveModelSpec({
    ...small,
    eosTokenIds: [1, 2],
    padTokenId: 0,
    isTied: false,
    ropeTheta: 5e5,
  });

  test("reads back what configFromSpec() writes", () => {
    assert.deepEqual(specFromConfig(configFromSpec(spec)), spec);
  });

  test("reads rotary constants where transformers 5 writes them", () => {
    const { rope_theta, ...rest } = configFromSpec(spec);
    const config = { ...rest, rope_parameters: { rope_theta, rope_type: "default" } };
    assert.equal(specFromConfig(config).ropeTheta, 5e5);
  });

  test("refuses what would compute something else", () => {
    const config = configFromSpec(spec);
    const wrong = [
      { architectures: ["LlamaForCausalLM"] },
      { hidden_act: "gelu" },
      { attention_bias: true },
      { use_sliding_window: true },
      { rope_scaling: { type: "yarn" } },
      { vocab_size: "10" },
    ];
    for (const change of wrong) assert.throws(() => specFromConfig({ ...config, ...change }), ModelSpecError);
  });
});
