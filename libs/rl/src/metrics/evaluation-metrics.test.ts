import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome } from "@hone/core";
import type { OutcomeRules } from "../algorithm/schema.ts";
import { rolloutOf } from "../testing.ts";
import { addEvaluationMetrics, passAtK } from "./evaluation-metrics.ts";
import { MetricSet } from "./reduction.ts";

const RULES: OutcomeRules = { truncated: "keep", agentFailed: { reward: 0 }, timedOut: "drop" };

describe("passAtK()", () => {
  test("is the share of the choices of k rollouts that hold one that passed", () => {
    for (let n = 1; n <= 8; n++) {
      for (let c = 0; c <= n; c++) {
        for (let k = 1; k <= n; k++) {
          assert.ok(Math.abs(passAtK(n, c, k) - counted(n, c, k)) < 1e-12, `n ${n}, c ${c}, k ${k}`);
        }
      }
    }
  });

  test("stays a number where factorials do not", () => {
    const estimate = passAtK(1000, 3, 100);
    assert.ok(estimate > 0.27 && estimate < 0.272, String(estimate));
  });
});

/** By looking at every choice; the first c of the n rollouts passed. */
function counted(n: number, c: number, k: number): number {
  let choices = 0;
  let passing = 0;
  for (let chosen = 0; chosen < 2 ** n; chosen++) {
    const bits = Array.from({ length: n }, (_, i) => (chosen >> i) & 1);
    if (bits.reduce((sum, bit) => sum + bit, 0) !== k) continue;
    choices++;
    if (bits.slice(0, c).includes(1)) passing++;
  }
  return passing / choices;
}

describe("addEvaluationMetrics()", () => {
  const recordOf = (tasks: Parameters<typeof addEvaluationMetrics>[1], passReward = 1) => {
    const metrics = new MetricSet();
    addEvaluationMetrics(metrics, tasks, RULES, { passAt: [1, 2, 4], passReward });
    return metrics.toRecord();
  };

  test("averages over tasks, and gives the error of their mean", () => {
    const record = recordOf([
      [rolloutOf(0, 0, 1), rolloutOf(0, 1, 0)],
      [rolloutOf(1, 0, 0), rolloutOf(1, 1, 0)],
    ]);
    assert.deepEqual(record, { "pass@1": 0.25, "pass@2": 0.5, tasks: 2, "reward/stderr": 0.25 });
  });

  test("takes the agent's word for success, and the reward where it gives none", () => {
    const shaped = (success: number) => rolloutOf(0, 0, 0.3, { metrics: { success } });
    assert.equal(recordOf([[shaped(1)]])["pass@1"], 1);
    assert.equal(recordOf([[shaped(0)]], 0.1)["pass@1"], 0);
    assert.equal(recordOf([[rolloutOf(0, 0, 0.7 + 0.2 + 0.1)]])["pass@1"], 1);
    assert.equal(recordOf([[rolloutOf(0, 0, 0.5)]], 0.5)["pass@1"], 1);
  });

  test("leaves out what says nothing about the agent, and counts its failures", () => {
    const record = recordOf([
      [rolloutOf(0, 0, 1), rolloutOf(0, 1, 1, { outcome: Outcome.infraFailed })],
      [rolloutOf(1, 0, 1, { outcome: Outcome.agentFailed }), rolloutOf(1, 1, 1)],
      [rolloutOf(2, 0, 1, { outcome: Outcome.timedOut })],
    ]);
    assert.equal(record.tasks, 2);
    assert.equal(record["pass@1"], 0.75);
    // Only the second task has two.
    assert.equal(record["pass@2"], 1);
  });
});
