import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome } from "@hone/core";
import { algorithmSchema, type OutcomeRules } from "./algorithm/schema.ts";
import { assignCredit } from "./credit.ts";
import type { Rollout } from "./rollout.ts";
import { rolloutOf } from "./testing.ts";

const RULES: OutcomeRules = { truncated: "keep", agentFailed: { reward: 0 }, timedOut: { reward: 0 } };
const ALGORITHM = {
  outcomes: RULES,
  reward: { clip: null },
  advantage: { kind: "grpo", normalizeByStd: false, epsilon: 0, whiten: false, clip: null },
} as const;

describe("assignCredit()", () => {
  test("leaves an infra_failed rollout out of its group's mean and counts it", () => {
    const failed = rolloutOf(0, 1, 100, { outcome: Outcome.infraFailed });
    const credit = assignCredit(
      [{ task: 0, rollouts: [rolloutOf(0, 0, 1), failed, rolloutOf(0, 2, 0)] }],
      ALGORITHM,
    );
    assert.deepEqual(
      credit.groups[0]?.rollouts.map(({ rollout, advantage }) => [rollout.slot.index, advantage]),
      [
        [0, 0.5],
        [2, -0.5],
      ],
    );
    assert.deepEqual(credit.leftOut, [failed]);
    assert.equal(credit.emptyGroupCount, 0);
  });

  test("drops and counts a group of which nobody is left", () => {
    const credit = assignCredit(
      [
        { task: 0, rollouts: [rolloutOf(0, 0, 1, { outcome: Outcome.infraFailed })] },
        { task: 1, rollouts: [rolloutOf(1, 0, 1), rolloutOf(1, 1, 0)] },
      ],
      ALGORITHM,
    );
    assert.deepEqual(
      credit.groups.map((group) => group.task),
      [1],
    );
    assert.equal(credit.emptyGroupCount, 1);
  });

  test("gives a failed agent the reward of its rule, inside the group's mean", () => {
    const failed = rolloutOf(0, 1, 5, { outcome: Outcome.agentFailed });
    const credit = assignCredit([{ task: 0, rollouts: [rolloutOf(0, 0, 1), failed] }], ALGORITHM);
    assert.deepEqual(
      credit.groups[0]?.rollouts.map(({ reward, advantage }) => [reward, advantage]),
      [
        [1, 0.5],
        [0, -0.5],
      ],
    );
  });

  test("leaves out a rollout without a sampled token", () => {
    const silent = rolloutOf(0, 1, 5, { outcome: Outcome.agentFailed, samples: [] });
    const credit = assignCredit([{ task: 0, rollouts: [rolloutOf(0, 0, 1), silent] }], ALGORITHM);
    assert.deepEqual(credit.leftOut, [silent]);
    assert.equal(credit.groups[0]?.rollouts[0]?.advantage, 0);
  });

  test("compares with the baseline rollout of the task, which is not trained", () => {
    const remax = algorithmSchema.parse({ advantage: { kind: "remax" } });
    const rollouts = [rolloutOf(0, 0, 1), rolloutOf(0, 1, 0)];
    const advantagesWith = (baseline: Rollout) =>
      assignCredit([{ task: 0, rollouts, baseline }], remax).groups[0]!.rollouts.map(
        ({ rollout, advantage }) => [rollout.slot.index, advantage],
      );
    assert.deepEqual(advantagesWith(rolloutOf(0, 2, 1)), [
      [0, 0],
      [1, -1],
    ]);
    const failed = rolloutOf(0, 2, 1, { outcome: Outcome.infraFailed });
    assert.deepEqual(
      advantagesWith(failed),
      [
        [0, 0.5],
        [1, -0.5],
      ],
      "without a reward of the baseline, with the mean of the group",
    );
  });
});
