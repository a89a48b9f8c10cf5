import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testConfig } from "../../testing/fake-run.ts";
import { stepOptimizer, warmStartOptimizer } from "./optimizer-settings.ts";

describe("stepOptimizer()", () => {
  const config = testConfig({
    trainer: {
      steps: 4,
      epochs: 2,
      minibatches: 2,
      optimizer: {
        kind: "adamw",
        learningRate: 1,
        schedule: { kind: "linear", warmupSteps: 1, finalRatio: 0 },
      },
    },
  });

  test("climbs over the updates of the warm-up steps", () => {
    const rates = [0, 1].flatMap((epoch) =>
      [0, 1].map((minibatch) => stepOptimizer(config, 1, epoch, minibatch).learningRate),
    );
    assert.deepEqual(rates, [0.25, 0.5, 0.75, 1]);
  });

  test("falls to the end of the last step", () => {
    assert.equal(stepOptimizer(config, 2, 0, 0).learningRate, 1);
    assert.equal(stepOptimizer(config, 3, 0, 0).learningRate, 1 - 4 / 12);
    assert.equal(stepOptimizer(config, 4, 1, 1).learningRate, 1 - 11 / 12);
  });

  test("gives the warm start a rate of its own", () => {
    assert.equal(warmStartOptimizer(config, 0.5).learningRate, 0.5);
    assert.equal(warmStartOptimizer(config, undefined).learningRate, 1);
  });
});
