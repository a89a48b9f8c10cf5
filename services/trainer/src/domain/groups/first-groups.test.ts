import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome, slotKey } from "@hone/core";
import { testRollout } from "../../testing/fake-run.ts";
import { batchSlots } from "../rollouts/batch-slots.ts";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import { FirstGroups } from "./first-groups.ts";

/** A rollout that is written `task.index`, with `!` after it if it cannot be scored. */
function rolloutOf(text: string): ScoredRollout {
  const [task, index] = text.replace("!", "").split(".").map(Number);
  return testRollout(
    { split: "train", step: 1, task: task!, index: index! },
    { outcome: text.endsWith("!") ? Outcome.infraFailed : Outcome.completed },
  );
}

/** The choice of two groups of two rollouts from three groups of three that arrive in an order. */
function choiceOf(arrivals: string): { chosen: string[]; isDone: boolean } {
  const first = new FirstGroups(batchSlots("train", 1, 3, 3), { groups: 2, rollouts: 2 });
  for (const text of arrivals.split(" ")) first.offer(rolloutOf(text));
  const chosen = first.chosen.map(({ slot }) => slotKey(slot).replace("train.1.", ""));
  return { chosen, isDone: first.isDone };
}

describe("FirstGroups", () => {
  test("takes the groups that are complete first, each with its first rollouts, in the order of the slots", () => {
    assert.deepEqual(choiceOf("2.2 0.1 2.0 1.0 0.2 1.1"), {
      chosen: ["0.1", "0.2", "2.0", "2.2"],
      isDone: true,
    });
  });

  test("waits while too few groups are complete", () => {
    assert.equal(choiceOf("2.2 0.1 2.0 1.0").isDone, false);
  });

  test("is not changed by what arrives after the choice", () => {
    const early = choiceOf("0.0 0.1 1.2 1.1");
    assert.deepEqual(choiceOf("0.0 0.1 1.2 1.1 2.0 2.1 2.2 0.2 1.0"), early);
  });

  test("passes over rollouts that cannot be scored while others may come", () => {
    assert.deepEqual(choiceOf("0.0! 0.1 0.2 1.0 1.1").chosen, ["0.1", "0.2", "1.0", "1.1"]);
  });

  test("fills a group up when all of its rollouts have arrived and too few can be scored", () => {
    const { chosen, isDone } = choiceOf("0.0! 0.1! 0.2 1.0 1.1");
    assert.deepEqual(chosen, ["0.0", "0.2", "1.0", "1.1"]);
    assert.equal(isDone, true);
  });
});
