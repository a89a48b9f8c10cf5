import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MetricSet, type OutcomeRules } from "@hone/rl";
import { testRollout } from "../../testing/fake-run.ts";
import { addPartMetrics, type PlayedTask } from "./part-metrics.ts";

const outcomes: OutcomeRules = { truncated: "keep", agentFailed: "keep", timedOut: "keep" };
const taskOf = (part: string, fields: object): PlayedTask["task"] => ({
  part,
  environment: "",
  environmentConfigJson: "",
  rowJson: JSON.stringify(fields),
});
const played = (task: PlayedTask["task"], ...rewards: number[]): PlayedTask => ({
  task,
  rollouts: rewards.map((reward, index) =>
    testRollout(
      { split: "train", step: 1, task: 0, index },
      { metrics: { success: reward }, scores: [{ judge: "environment", weight: 1, value: reward }] },
    ),
  ),
});
const figuresOf = (tasks: readonly PlayedTask[], pass?: { passAt: number[]; passReward: number }) => {
  const metrics = new MetricSet();
  addPartMetrics(metrics, tasks, { outcomes, ...(pass !== undefined && { pass }) });
  return metrics.toRecord();
};

describe("addPartMetrics()", () => {
  test("gives the figures of each part of a mix", () => {
    const record = figuresOf([
      played(taskOf("lake", {}), 1, 0),
      played(taskOf("shop", {}), 0, 0),
      played(taskOf("lake", {}), 1, 1),
    ]);
    assert.equal(record["part/lake/reward/mean"], 0.75);
    assert.equal(record["part/lake/success"], 0.75);
    assert.equal(record["part/lake/groups"], 2);
    assert.equal(record["part/lake/episodes"], 4);
    assert.equal(record["part/shop/reward/mean"], 0);
    assert.equal(record["part/shop/outcome/completed"], 2);
  });

  test("tells rows without a part apart by their data source", () => {
    const record = figuresOf([played(taskOf("", { data_source: "gsm8k" }), 1), played(taskOf("", {}), 0)]);
    assert.equal(record["part/gsm8k/success"], 1);
    assert.equal(record["part/other/success"], 0);
  });

  test("adds what an evaluation has by task", () => {
    const pass = { passAt: [1, 2], passReward: 1 };
    const record = figuresOf([played(taskOf("lake", {}), 1, 0), played(taskOf("shop", {}), 0, 0)], pass);
    assert.equal(record["part/lake/pass@1"], 0.5);
    assert.equal(record["part/lake/pass@2"], 1);
    assert.equal(record["part/shop/pass@2"], 0);
  });

  test("adds nothing to a run whose tasks are all of one kind, or of more kinds than can be shown", () => {
    assert.deepEqual(figuresOf([played(taskOf("", { data_source: "gsm8k" }), 1)]), {});
    const many = Array.from({ length: 65 }, (_, index) =>
      played(taskOf("", { data_source: `s${index}` }), 1),
    );
    assert.deepEqual(figuresOf(many), {});
  });
});
