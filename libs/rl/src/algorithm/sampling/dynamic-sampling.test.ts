import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Group, Rollout } from "../../rollout.ts";
import { rolloutOf } from "../../testing.ts";
import { algorithmSchema } from "../schema.ts";
import { groupsThatTeach, nextBatchSize } from "./dynamic-sampling.ts";

const { outcomes } = algorithmSchema.parse({ advantage: { kind: "grpo" }, loss: { kind: "ppo_clip" } });
const RULES = { outcomes, passReward: 1 };

const rollout = (reward: number, changes: Partial<Rollout> = {}): Rollout => rolloutOf(0, 0, reward, changes);
const group = (task: number, rollouts: readonly Rollout[], baseline?: Rollout): Group => ({
  task,
  rollouts,
  ...(baseline !== undefined && { baseline }),
});
const tasksOf = (groups: readonly Group[]) => groups.map(({ task }) => task);

describe("groupsThatTeach()", () => {
  test("keeps the groups whose rewards differ, in their order", () => {
    const groups = [
      group(0, [rollout(1), rollout(1)]),
      group(1, [rollout(0), rollout(1)]),
      group(2, [rollout(0), rollout(0)]),
      group(3, [rollout(0.2), rollout(0.1)]),
    ];
    assert.deepEqual(tasksOf(groupsThatTeach(groups, { metric: "reward" }, RULES)), [1, 3]);
    assert.deepEqual(tasksOf(groupsThatTeach(groups, { metric: "success" }, RULES)), [1]);
  });

  test("does not look at rollouts that are not trained", () => {
    const lost = rollout(1, { outcome: "infra_failed" });
    const silent = rollout(1, { samples: [] });
    const groups = [
      group(0, [rollout(0), lost, rollout(0)]),
      group(1, [rollout(0), silent]),
      group(2, [lost, lost]),
      group(3, [rollout(0), lost, rollout(1)]),
    ];
    assert.deepEqual(tasksOf(groupsThatTeach(groups, { metric: "reward" }, RULES)), [3]);
  });

  test("keeps a flat group that differs from its baseline", () => {
    const groups = [group(0, [rollout(1)], rollout(0)), group(1, [rollout(1)], rollout(1))];
    assert.deepEqual(tasksOf(groupsThatTeach(groups, { metric: "reward" }, RULES)), [0]);
  });
});

describe("nextBatchSize()", () => {
  test("asks for as many tasks as the share of groups that teach makes necessary", () => {
    assert.equal(nextBatchSize(8, 8, 8), 0);
    assert.equal(nextBatchSize(8, 9, 16), 0);
    assert.equal(nextBatchSize(8, 6, 8), 3); // 2 missing, 6 of 8 teach
    assert.equal(nextBatchSize(8, 7, 16), 3); // 1 missing, 7 of 16 teach
  });

  test("never asks for more tasks than the step trains", () => {
    assert.equal(nextBatchSize(8, 0, 8), 8);
    assert.equal(nextBatchSize(8, 1, 8), 8);
  });
});
