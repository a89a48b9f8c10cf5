import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseRunFile } from "@hone/config";
import { configFromSpec, type ModelConfig, resolveModelSpec } from "@hone/nn";
import { checkServerRun } from "./check-server-run.ts";
import type { ServerFacts } from "./engine-server.ts";

const spec = resolveModelSpec({
  vocabSize: 50,
  hiddenSize: 32,
  numLayers: 2,
  numHeads: 4,
  maxPositions: 2_048,
});
const model = configFromSpec(spec) as ModelConfig;
const bounds = { minTemperature: 0.01, maxTemperature: 2, maxRepetitionPenalty: 2 };
const facts: ServerFacts = {
  name: "vLLM 0.32.0",
  maxContextTokens: 1_024,
  scoring: "processed",
  takesAdapters: true,
  hasStartWeights: true,
  startModel: "/models/base",
  startSpec: spec,
};

function runOf(rollout: object = {}, lora?: object, trainer: object = {}) {
  return parseRunFile(
    JSON.stringify({
      name: "run",
      model: { path: "/models/base", ...(lora !== undefined && { lora }) },
      dataset: { train: { source: "environment", environment: "frozen_lake", seeds: { from: 0, to: 10 } } },
      agent: { name: "frozen_lake" },
      rollout: { tasksPerStep: 2, groupSize: 2, maxContextTokens: 512, ...rollout },
      trainer: { steps: 1, optimizer: { kind: "adamw", learningRate: 0.001 }, ...trainer },
    }),
  );
}

const keysOf = (rollout: object, change: Partial<ServerFacts> = {}, lora?: object) =>
  checkServerRun(runOf(rollout, lora), model, { ...facts, ...change }, bounds).map(({ key }) => key);

describe("checkServerRun()", () => {
  test("accepts what the server can do", () => {
    const sampling = { temperature: 0.7, topP: 0.9, topK: 50, minP: 0.1, repetitionPenalty: 1.1 };
    assert.deepEqual(keysOf({ sampling }, {}, { rank: 4 }), []);
    assert.deepEqual(keysOf({ sampling: { temperature: 0 } }, { scoring: "raw" }), []);
  });

  test("refuses to keep keys and values, as its weights change only while nothing runs on them", () => {
    const problemsWith = (onNewVersion: string) =>
      checkServerRun(runOf({}, undefined, { maxStaleness: 1, onNewVersion }), model, facts, bounds);
    assert.deepEqual(["recompute", "finish"].flatMap(problemsWith), []);
    const [problem] = problemsWith("keep");
    assert.equal(problem?.key, "trainer.onNewVersion");
    assert.match(
      problem.message,
      /recompute or finish, as the weights of vLLM 0.32.0 are changed only while nothing runs on them/,
    );
  });

  test("refuses parameters that the server's logprobs do not include", () => {
    const sampling = { temperature: 0.7, topP: 0.9, topK: 50, minP: 0.1, repetitionPenalty: 1.1 };
    const cut = ["topP", "topK", "minP"].map((name) => `rollout.sampling.${name}`);
    assert.deepEqual(keysOf({ sampling }, { scoring: "tempered" }), cut);
    assert.deepEqual(keysOf({ sampling }, { scoring: "raw" }), [
      ...cut,
      "rollout.sampling.temperature",
      "rollout.sampling.repetitionPenalty",
    ]);
  });

  test("refuses values that the server would change silently, and contexts that are too long for it", () => {
    assert.deepEqual(keysOf({ sampling: { temperature: 0.001, repetitionPenalty: 3 } }), [
      "rollout.sampling.temperature",
      "rollout.sampling.repetitionPenalty",
    ]);
    assert.deepEqual(keysOf({ sampling: { temperature: 2.5 } }), ["rollout.sampling.temperature"]);
    assert.deepEqual(keysOf({ maxContextTokens: 2_000 }), ["rollout.maxContextTokens"]);
  });

  test("refuses adapters if the server takes none, and a model with other tensors", () => {
    assert.deepEqual(keysOf({}, { takesAdapters: false }, { rank: 4 }), ["model.lora"]);
    assert.deepEqual(keysOf({}, { takesAdapters: false }), []);
    const startSpec = resolveModelSpec({ ...spec, numLayers: 3 });
    assert.deepEqual(keysOf({}, { startSpec }), ["model"]);
    assert.deepEqual(keysOf({}, { startSpec: undefined }), []);
  });
});
