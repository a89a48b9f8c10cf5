import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readSamplingDefaults } from "./sampling-defaults.ts";

const NOTHING = {
  temperature: undefined,
  topP: undefined,
  topK: undefined,
  minP: undefined,
  repetitionPenalty: undefined,
  maxNewTokens: undefined,
};

describe("readSamplingDefaults()", () => {
  test("reads the sampling parameters that a model's authors recommend", () => {
    const file = {
      do_sample: true,
      eos_token_id: [1, 2],
      temperature: 0.6,
      top_p: 0.95,
      top_k: 20,
      min_p: 0.05,
      repetition_penalty: 1.1,
      max_new_tokens: 256,
    };
    assert.deepEqual(readSamplingDefaults(JSON.stringify(file)), {
      temperature: 0.6,
      topP: 0.95,
      topK: 20,
      minP: 0.05,
      repetitionPenalty: 1.1,
      maxNewTokens: 256,
    });
  });

  test("leaves out values that a request may not have, and is empty without a file", () => {
    const file = { temperature: -1, top_p: "high", top_k: null, max_new_tokens: 1.5, min_p: 0.1 };
    assert.deepEqual(readSamplingDefaults(JSON.stringify(file)), { ...NOTHING, minP: 0.1 });
    assert.deepEqual(readSamplingDefaults(undefined), NOTHING);
  });
});
