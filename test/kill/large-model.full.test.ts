/**
 * A run of a model with the shape of SmolLM2-135M ends with the same bytes when it is repeated, and when processes are
 * killed, in float32 and in eight bits. Only its tokenizer is smaller: that of the example.
 */

import { after, before, describe, test } from "node:test";
import { type KillHarness, startKillHarness } from "./kill-case.ts";

const MINUTE_MS = 60_000;
const SMOLLM2 = {
  hiddenSize: 576,
  numLayers: 30,
  numHeads: 9,
  numKvHeads: 3,
  headDim: 64,
  intermediateSize: 1_536,
  maxPositions: 1_024,
} as const;

for (const quantization of ["none", "int8"] as const) {
  describe(`a run of a large model ends with the same weights (quantization ${quantization})`, {
    timeout: 120 * MINUTE_MS,
  }, () => {
    let harness: KillHarness;
    before(async () => {
      const run = {
        shape: SMOLLM2,
        steps: 2,
        tasksPerStep: 1,
        minibatches: 1,
        warmStartTasks: 2,
        evalTasks: 1,
        quantization,
      };
      harness = await startKillHarness({ deadlineMs: 20 * MINUTE_MS, run });
    });
    after(() => harness?.[Symbol.asyncDispose]());

    test("when it is repeated without a kill", () => harness.repeats());
    test("when inference-gateway is killed before a version is loaded", () =>
      harness.survives("inference-gateway", "published"));
    test("when the trainer is killed between the state and its commit", () =>
      harness.survives("trainer", "state-renamed"));
  });
}
