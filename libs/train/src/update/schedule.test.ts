import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { learningRateAt, type ScheduleConfig } from "./schedule.ts";

const base: ScheduleConfig = {
  kind: "constant",
  learningRate: 1,
  warmupUpdates: 4,
  totalUpdates: 14,
  finalFraction: 0.2,
};

const rates = (config: ScheduleConfig, updates: number[]) =>
  updates.map((update) => Number(learningRateAt(config, update).toFixed(6)));

describe("learningRateAt()", () => {
  test("warms up in equal steps to the highest rate", () => {
    assert.deepEqual(rates(base, [0, 1, 2, 3, 4, 100]), [0.25, 0.5, 0.75, 1, 1, 1]);
  });

  test("decays linearly to the final rate and stays there", () => {
    assert.deepEqual(rates({ ...base, kind: "linear" }, [4, 9, 14, 20]), [1, 0.6, 0.2, 0.2]);
  });

  test("decays along a cosine to the final rate and stays there", () => {
    assert.deepEqual(rates({ ...base, kind: "cosine" }, [4, 9, 14, 20]), [1, 0.6, 0.2, 0.2]);
  });
});
