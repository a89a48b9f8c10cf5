import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testConfig } from "../../testing/fake-run.ts";
import { updateOptimizer, warmStartOptimizer } from "./optimizer-settings.ts";

describe("updateOptimizer()", () => {
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

  const rateAt = (step: number, epoch: number, minibatch: number) =>
    updateOptimizer(config.trainer, 4, { step, epoch, minibatch }).learningRate;

  test("climbs over the updates of the warm-up steps", () => {
    const rates = [0, 1].flatMap((epoch) => [0, 1].map((minibatch) => rateAt(1, epoch, minibatch)));
    assert.deepEqual(rates, [0.25, 0.5, 0.75, 1]);
  });

  test("falls to the end of the last step", () => {
    assert.equal(rateAt(2, 0, 0), 1);
    assert.equal(rateAt(3, 0, 0), 1 - 4 / 12);
    assert.equal(rateAt(4, 1, 1), 1 - 11 / 12);
  });

  test("gives the warm start a rate of its own", () => {
    assert.equal(warmStartOptimizer(config, 0.5).learningRate, 0.5);
    assert.equal(warmStartOptimizer(config, undefined).learningRate, 1);
  });
});
