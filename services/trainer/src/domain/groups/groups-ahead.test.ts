import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testConfig } from "../../testing/fake-run.ts";
import { nextAhead } from "./groups-ahead.ts";

describe("nextAhead()", () => {
  const config = testConfig({
    rollout: { tasksPerStep: 10, groupSize: 2 },
    trainer: { steps: 9, maxStaleness: 4, optimizer: { kind: "adamw", learningRate: 0.1 } },
  });
  const after = (ahead: number, ready: number) =>
    nextAhead(config, { "groups/ahead": ahead, "groups/ready": ready });

  test("goes twice as far where fewer groups are ready than a step trains, up to maxStaleness steps", () => {
    assert.deepEqual([after(10, 9), after(20, 0), after(35, 0), after(40, 9)], [20, 40, 40, 40]);
  });

  test("stays where the next step's groups are ready", () => {
    assert.deepEqual([after(10, 10), after(25, 19)], [10, 25]);
  });

  test("goes less far by a quarter of what is ready beyond the next step's groups, but at least one step", () => {
    assert.deepEqual([after(40, 20), after(40, 43), after(12, 40), after(10, 40)], [37, 31, 10, 10]);
  });

  test("goes as far as it may where the step before has no such figures", () => {
    assert.equal(nextAhead(config, {}), 40);
  });
});
