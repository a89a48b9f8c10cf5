import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type RunConfig, resolveRunConfig } from "@hone/config";
import { configFromSpec, resolveModelSpec } from "@hone/nn";
import { checkRun } from "./check-run.ts";

const MIB = 2 ** 20;

function runWith(model: unknown, maxContextTokens: number, rollout = {}): RunConfig {
  return resolveRunConfig({
    name: "test",
    model,
    dataset: { train: { source: "environment", environment: "e", seeds: { from: 0, to: 9 } } },
    agent: { name: "a" },
    rollout: { tasksPerStep: 2, groupSize: 2, maxContextTokens, sampling: { maxNewTokens: 8 }, ...rollout },
    trainer: { steps: 1, optimizer: { kind: "adamw", learningRate: 0.1 } },
  });
}

describe("checkRun()", () => {
  const config = configFromSpec(
    resolveModelSpec({
      family: "llama",
      vocabSize: 9,
      hiddenSize: 64,
      numLayers: 2,
      numHeads: 4,
      maxPositions: 512,
    }),
  );
  const path = { path: "owner/name" };

  test("accepts a context for which there are enough positions and memory", () => {
    assert.deepEqual(checkRun(runWith(path, 512), config, MIB), []);
  });

  test("names the positions of the model when the context is longer", () => {
    const [problem] = checkRun(runWith(path, 513), config, MIB);
    assert.equal(problem?.key, "rollout.maxContextTokens");
    assert.match(problem.message, /is 513; it must be at most 512, the positions of the model/);
  });

  test("names the memory when keys and values do not fit, also if only the run file is known", () => {
    const init = { architecture: "qwen3", hiddenSize: 64, numLayers: 2, numHeads: 4, tokenizer: "t" };
    for (const [model, known] of [
      [path, config],
      [{ init }, undefined],
    ] as const) {
      const [problem] = checkRun(runWith(model, 512), known, MIB / 4);
      assert.match(problem?.message ?? "", /at most 256, which the engine's 0 MiB for keys and values hold/);
    }
  });

  test("counts the bytes of keys and values in eight bits, which need heads of a multiple of 4 channels", () => {
    const large = (headDim: number) =>
      configFromSpec(
        resolveModelSpec({
          family: "llama",
          vocabSize: 9,
          hiddenSize: 256,
          numLayers: 2,
          numHeads: 4,
          headDim,
          maxPositions: 512,
        }),
      );
    const inBytes = runWith(path, 512, { quantization: "int8" });
    assert.equal(checkRun(runWith(path, 512), large(64), MIB).length, 1);
    assert.deepEqual(checkRun(inBytes, large(64), MIB), []);
    const [problem] = checkRun(inBytes, large(66), 8 * MIB);
    assert.equal(problem?.key, "rollout.quantization");
    assert.match(problem.message, /none for this model, whose heads have 66 channels/);
  });

  test("names the field of a model that cannot be built, and does not check an unknown model", () => {
    const [problem] = checkRun(runWith(path, 64), { ...config, hidden_act: "gelu" }, MIB);
    assert.match(problem?.message ?? "", /hidden_act/);
    assert.deepEqual(checkRun(runWith(path, 64), undefined, MIB), []);
  });
});
