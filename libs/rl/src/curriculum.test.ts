import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome } from "@hone/core";
import { type CurriculumConfig, successOf, TaskHistory } from "./curriculum.ts";
import { rolloutOf } from "./testing.ts";

const CONFIG: CurriculumConfig = { kind: "success", low: 0.25, high: 0.75, window: 2, chance: 0.1 };
const POSITIONS = Array.from({ length: 2_000 }, (_, position) => position);

function takenShare(history: TaskHistory, taskId: string): number {
  return POSITIONS.filter((position) => history.isTaken(taskId, position)).length / POSITIONS.length;
}

describe("TaskHistory", () => {
  test("takes tasks that it does not know and those within the bounds, and of the others some", () => {
    const history = new TaskHistory(CONFIG, 1);
    history.record([
      { taskId: "easy", success: 1 },
      { taskId: "hard", success: 0 },
      { taskId: "right", success: 0.75 },
      { taskId: "unseen", success: undefined },
    ]);
    assert.equal(takenShare(history, "right"), 1);
    assert.equal(takenShare(history, "unseen"), 1);
    for (const taskId of ["easy", "hard"]) {
      assert.ok(Math.abs(takenShare(history, taskId) - 0.1) < 0.03, `${takenShare(history, taskId)}`);
    }
  });

  test("counts the latest visits only", () => {
    const history = new TaskHistory(CONFIG, 1);
    const visit = (success: number) => history.record([{ taskId: "a", success }]);
    visit(1);
    visit(0);
    assert.equal(takenShare(history, "a"), 1);
    visit(0);
    assert.ok(takenShare(history, "a") < 0.5);
  });

  test("chooses the same from the same history, and otherwise under another seed", () => {
    const choice = (seed: number) => {
      const history = new TaskHistory(CONFIG, seed);
      history.record([{ taskId: "a", success: 0 }]);
      return POSITIONS.map((position) => history.isTaken("a", position)).join();
    };
    assert.equal(choice(1), choice(1));
    assert.notEqual(choice(1), choice(2));
  });
});

describe("a user's curriculum", () => {
  const config = { kind: "module", path: "own.ts", options: { share: 0.5 }, window: 2 } as const;

  test("is told the latest visits, its options and a draw that repeats", () => {
    const asked: unknown[] = [];
    const history = new TaskHistory(config, 1, (task, options) => {
      asked.push([task.successes, options]);
      return task.draw < 0.5;
    });
    history.record([0, 1, 0.5].map((success) => ({ taskId: "a", success })));
    const share = takenShare(history, "a");
    assert.ok(Math.abs(share - 0.5) < 0.05, `${share}`);
    assert.deepEqual(asked[0], [[1, 0.5], { share: 0.5 }]);
    assert.equal(history.isTaken("a", 7), history.isTaken("a", 7));
  });

  test("that throws, or does not say yes or no, ends the run with the reason", () => {
    const failing = new TaskHistory(config, 1, () => {
      throw new RangeError("no such task");
    });
    assert.throws(() => failing.isTaken("a", 0), /own\.ts failed for the task a: .*no such task/);
    assert.throws(
      () => new TaskHistory(config, 1, () => 1).isTaken("a", 0),
      /own\.ts returned 1 for the task a/,
    );
  });
});

describe("successOf()", () => {
  const rules = { truncated: "keep", agentFailed: { reward: 0 }, timedOut: "drop" } as const;

  test("is the share that passed, of the rollouts that have a reward", () => {
    const rollouts = [
      rolloutOf(0, 0, 1),
      rolloutOf(0, 1, 0.5),
      rolloutOf(0, 2, 1, { outcome: Outcome.infraFailed }),
      rolloutOf(0, 3, 0, { metrics: { success: 1 } }),
    ];
    assert.equal(successOf(rollouts, rules, { passReward: 1 }), 2 / 3);
    assert.equal(successOf(rollouts.slice(2, 3), rules, { passReward: 1 }), undefined);
  });
});
