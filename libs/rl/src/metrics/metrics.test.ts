import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome } from "@hone/core";
import type { OutcomeRules } from "../algorithm/schema.ts";
import { rolloutOf, sampleOf } from "../testing.ts";
import { MetricSet, Reduction } from "./reduction.ts";
import { addRolloutMetrics } from "./rollout-metrics.ts";

const RULES: OutcomeRules = { truncated: "keep", agentFailed: { reward: 0 }, timedOut: { reward: 0 } };

describe("MetricSet", () => {
  test("weighs means, adds sums, keeps extremes", () => {
    const metrics = new MetricSet();
    metrics.add("loss", Reduction.mean, 1, 3);
    metrics.add("loss", Reduction.mean, 5, 1);
    metrics.add("ratio/max", Reduction.max, 1.5);
    metrics.add("ratio/max", Reduction.max, 1.2);
    metrics.add("tokens", Reduction.sum, 4);
    metrics.add("tokens", Reduction.sum, 5);
    metrics.add("rate", Reduction.last, 1);
    metrics.add("rate", Reduction.last, 2);
    metrics.add("low", Reduction.min, 3);
    metrics.add("low", Reduction.min, 2);
    assert.deepEqual(metrics.toRecord(), { loss: 2, "ratio/max": 1.5, tokens: 9, rate: 2, low: 2 });
  });

  test("leaves out a mean over nothing", () => {
    const metrics = new MetricSet();
    metrics.add("loss", Reduction.mean, 1, 0);
    assert.deepEqual(metrics.toRecord(), {});
  });

  test("refuses a name with two reductions", () => {
    const metrics = new MetricSet();
    metrics.add("loss", Reduction.mean, 1);
    assert.throws(() => metrics.add("loss", Reduction.sum, 1), /the metric loss is reduced by mean/);
  });
});

describe("addRolloutMetrics()", () => {
  test("counts every outcome and takes statistics over the rollouts with a reward", () => {
    const metrics = new MetricSet();
    addRolloutMetrics(
      metrics,
      [
        rolloutOf(0, 0, 1, { metrics: { success: 1 }, samples: [sampleOf(4)] }),
        rolloutOf(0, 1, 0, { metrics: { success: 0 } }),
        rolloutOf(0, 2, 9, { outcome: Outcome.infraFailed, metrics: { success: 1 } }),
      ],
      RULES,
    );
    const record = metrics.toRecord();
    assert.equal(record.episodes, 3);
    assert.equal(record["reward/mean"], 0.5);
    assert.equal(record["reward/std"], 0.5);
    assert.equal(record.success, 0.5);
    assert.equal(record.tokens, 11);
    assert.equal(record["tokens/sampled_mean"], 3);
    assert.equal(record["outcome/completed"], 2);
    assert.equal(record["outcome/infra_failed"], 1);
    assert.equal(record["outcome/stale"], 0);
  });

  test("keeps an agent's metric apart from Hone's own of the same name", () => {
    const metrics = new MetricSet();
    addRolloutMetrics(metrics, [rolloutOf(0, 0, 1, { metrics: { tokens: 50, "reward/mean": 7 } })], RULES);
    const record = metrics.toRecord();
    assert.equal(record.tokens, 3);
    assert.equal(record["agent/tokens"], 50);
    assert.equal(record["agent/reward/mean"], 7);
  });

  test("reports the mean of each judge and of its metrics over the rollouts with a reward", () => {
    const metrics = new MetricSet();
    const scored = (value: number, acc: number) => [{ judge: "math", weight: 2, value, metrics: { acc } }];
    addRolloutMetrics(
      metrics,
      [
        rolloutOf(0, 0, 0, { scores: scored(1, 1) }),
        rolloutOf(0, 1, 0, { scores: scored(-1, 0) }),
        rolloutOf(0, 2, 0, { scores: scored(-1, 0), outcome: Outcome.infraFailed }),
      ],
      RULES,
    );
    const record = metrics.toRecord();
    assert.equal(record["judge/math"], 0);
    assert.equal(record["judge/math/acc"], 0.5);
    assert.equal(record["reward/mean"], 0);
  });
});
