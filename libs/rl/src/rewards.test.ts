import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome } from "@hone/core";
import type { OutcomeRules } from "./algorithm/schema.ts";
import { rewardOf, weightedSum } from "./rewards.ts";

const SCORES = [
  { judge: "environment", weight: 1, value: 0.5 },
  { judge: "format", weight: 0.25, value: -2 },
];
const SCORE_ALL: OutcomeRules = {
  truncated: "keep",
  agentFailed: "keep",
  timedOut: "keep",
};

describe("rewards", () => {
  test("weightedSum() adds weight times value", () => {
    assert.equal(weightedSum(SCORES), 0);
    assert.equal(weightedSum([{ judge: "a", weight: 2, value: 3 }]), 6);
    assert.equal(weightedSum([]), 0);
  });

  test("rewardOf() leaves out what says nothing about the agent, whatever the rules", () => {
    for (const outcome of [Outcome.infraFailed, Outcome.cancelled, Outcome.stale]) {
      assert.equal(rewardOf({ outcome, scores: SCORES }, SCORE_ALL), undefined);
    }
  });

  test("rewardOf() follows the rule of each outcome on its own", () => {
    const scores = [{ judge: "environment", weight: 1, value: 0.5 }];
    const rules: OutcomeRules = {
      truncated: "keep",
      agentFailed: { reward: 0 },
      timedOut: "drop",
    };
    assert.equal(rewardOf({ outcome: Outcome.truncated, scores }, rules), 0.5);
    assert.equal(rewardOf({ outcome: Outcome.agentFailed, scores }, rules), 0);
    assert.equal(rewardOf({ outcome: Outcome.timedOut, scores }, rules), undefined);
  });

  test("rewardOf() gives a completed rollout its scores, whatever the rules", () => {
    const rules: OutcomeRules = {
      truncated: "drop",
      agentFailed: "drop",
      timedOut: "drop",
    };
    assert.equal(
      rewardOf({ outcome: Outcome.completed, scores: [{ judge: "a", weight: 2, value: 3 }] }, rules),
      6,
    );
  });
});
