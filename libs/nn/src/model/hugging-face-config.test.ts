import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ModelSpecError } from "../errors.ts";
import { configFromSpec, specFromConfig } from "./hugging-face-config.ts";
import { resolveModelSpec } from "./model-spec.ts";

const small = { vocabSize: 10, hiddenSize: 16, numLayers: 2, numHeads: 4 };

describe("resolveModelSpec()", () => {
  test("fills in defaults for missing fields", () => {
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
  const config = configFromSpec(spec);

  test("reads back what configFromSpec() writes, for every family", () => {
    const llama3 = { factor: 8, lowFreqFactor: 1, highFreqFactor: 4, originalMaxPositions: 8192 };
    const yarn = { factor: 4, betaFast: 32, betaSlow: 1, originalMaxPositions: 64, isTruncated: true };
    const specs = [
      spec,
      resolveModelSpec({ ...small, family: "qwen3", attentionBias: "all", headDim: 8 }),
      resolveModelSpec({ ...small, family: "qwen2", attentionBias: "inputs" }),
      resolveModelSpec({ ...small, family: "llama", attentionBias: "all", hasMlpBias: true }),
      resolveModelSpec({ ...small, family: "llama", ropeScaling: { kind: "llama3", ...llama3 } }),
      resolveModelSpec({ ...small, ropeScaling: { kind: "yarn", ...yarn, attentionFactor: 1.1 } }),
      resolveModelSpec({ ...small, ropeScaling: { kind: "linear", factor: 2 } }),
    ];
    for (const each of specs) assert.deepEqual(specFromConfig(configFromSpec(each)), each);
  });

  test("reads rotary constants in the format of transformers 5", () => {
    const { rope_theta, ...rest } = config;
    const newStyle = { ...rest, rope_parameters: { rope_theta, rope_type: "default" } };
    assert.equal(specFromConfig(newStyle).ropeTheta, 5e5);
  });

  test("uses defaults for fields that older configurations lack, and reads -1 as no token", () => {
    const { head_dim, num_key_value_heads, rope_theta, tie_word_embeddings, ...old } = configFromSpec(
      resolveModelSpec({ ...small, family: "llama" }),
    );
    const read = specFromConfig({ ...old, pad_token_id: -1 });
    assert.deepEqual(
      [read.headDim, read.numKeyValueHeads, read.ropeTheta, read.isTied, read.padTokenId],
      [4, 4, 10_000, false, undefined],
    );
  });

  test("ignores a sliding window that no layer uses", () => {
    const unused = { use_sliding_window: true, sliding_window: 64, max_window_layers: 2 };
    assert.deepEqual(specFromConfig({ ...config, ...unused }), spec);
  });

  test("names the unsupported field that would change the computation", () => {
    const wrong: readonly [Record<string, unknown>, string][] = [
      [{ architectures: ["MistralForCausalLM"] }, "architectures"],
      [{ hidden_act: "gelu" }, "hidden_act"],
      [{ use_sliding_window: true, sliding_window: 64, max_window_layers: 1 }, "sliding_window"],
      [{ layer_types: ["full_attention", "sliding_attention"] }, "layer_types"],
      [{ rope_scaling: { type: "dynamic", factor: 2 } }, "rope_scaling"],
      [{ rope_parameters: { rope_type: "longrope" } }, "rope_parameters"],
      [{ rope_scaling: { type: "linear" } }, "factor"],
      [{ partial_rotary_factor: 0.5 }, "partial_rotary_factor"],
      [{ quantization_config: { quant_method: "gptq" } }, "quantization_config"],
      [{ attention_bias: "yes" }, "attention_bias"],
      [{ vocab_size: "10" }, "vocab_size"],
    ];
    for (const [change, field] of wrong) {
      assert.throws(
        () => specFromConfig({ ...config, ...change }),
        (error) => error instanceof ModelSpecError && error.field === field,
        field,
      );
    }
  });
});
