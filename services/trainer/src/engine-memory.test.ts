import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { resolveModelSpec } from "@hone/nn";
import { fitEngine, memoryProblems } from "./engine-memory.ts";
import { testConfig } from "./testing/fake-run.ts";

/** The shape of SmolLM2-135M. */
const spec = resolveModelSpec({
  vocabSize: 49_152,
  hiddenSize: 576,
  numLayers: 30,
  numHeads: 9,
  numKeyValueHeads: 3,
  intermediateSize: 1_536,
});
const resources = (gib: number) => ({ engineThreads: 2, engineMemoryBytes: gib * 2 ** 30 });

function runOf(maxContextTokens: number, microbatchTokens: number) {
  const config = testConfig();
  const engine = { kind: "onnx" as const, microbatchTokens, quantizedGradients: false };
  return {
    ...config,
    rollout: { ...config.rollout, maxContextTokens },
    trainer: { ...config.trainer, engine },
  };
}

describe("fitEngine()", () => {
  test("135 million parameters on rows of 512 tokens fit into 5 GiB, with recomputed layers where passes are long", () => {
    const fit = (microbatchTokens: number, gib: number) => {
      assert.deepEqual(memoryProblems(spec, runOf(512, microbatchTokens), resources(gib)), []);
      return fitEngine({ role: "policy", spec }, runOf(512, microbatchTokens), resources(gib))
        .recomputedLayers;
    };
    assert.equal(fit(512, 5), 0);
    assert.ok(fit(1_024, 5) > 0);
    assert.equal(fit(1_024, 16), 0);
  });
});

describe("memoryProblems()", () => {
  const refusals: [key: string, run: ReturnType<typeof runOf>, gib: number][] = [
    ["trainer.engine.microbatchTokens", runOf(512, 16_384), 5],
    ["rollout.maxContextTokens", runOf(16_384, 1_024), 8],
    ["model", runOf(128, 128), 2],
  ];
  for (const [key, run, gib] of refusals) {
    test(`names ${key} and the predicted memory when lowering it helps`, () => {
      const [problem, ...others] = memoryProblems(spec, run, resources(gib));
      assert.deepEqual([problem?.key, others], [key, []]);
      assert.match(
        problem!.message,
        new RegExp(
          `fits into ${gib * 1_024} MiB \\(HONE_TRAINER_MEMORY_MIB\\); predicted are \\d+ MiB: weights 513, optimizer 1026`,
        ),
      );
    });
  }

  test("names the model of a critic or a teacher that is too large, with its own place", () => {
    const small = resolveModelSpec({ vocabSize: 32, hiddenSize: 8, numLayers: 1, numHeads: 2 });
    const run = runOf(128, 128);
    const optimizer = { kind: "adamw", learningRate: 0.1 };
    const { algorithm, trainer } = testConfig({
      algorithm: {
        advantage: { kind: "gae" },
        distillation: { teachers: [{ model: { path: "a/teacher" } }] },
      },
      trainer: { steps: 1, optimizer, critic: { model: { path: "a/critic" } } },
    });
    const config = { ...run, algorithm, trainer: { ...trainer, engine: run.trainer.engine } };
    for (const [name, key, place] of [
      ["critic", "trainer.critic.model", "a/critic"],
      ["teacher-0", "algorithm.distillation.teachers[0].model", "a/teacher"],
    ] as const) {
      const others = new Map([
        ["critic", small],
        ["teacher-0", small],
        [name, spec],
      ]);
      const [problem] = memoryProblems(small, config, resources(2), others);
      assert.deepEqual([problem?.key, problem?.valueJson], [key, JSON.stringify(place)]);
    }
  });
});
