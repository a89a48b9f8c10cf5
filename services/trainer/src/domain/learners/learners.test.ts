import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testConfig, testRun } from "../../testing/fake-run.ts";
import { earlierVersionFor, earlierVersions } from "./earlier-versions.ts";
import { runOfLearner } from "./learner.ts";
import { lessonsOf } from "./lessons.ts";
import { rolePlayers } from "./role-players.ts";

const run = testRun({
  config: testConfig({
    policies: { rival: { epochs: 7 }, past: { earlier: { every: 5, size: 3 } } },
    roles: { own: {}, past: { policy: "past" }, rival: { policy: "rival" } },
  }),
});
const past = { name: "past", every: 5, size: 3 };
const slot = (task: number, index = 0) => ({ split: "train", step: 1, task, index }) as const;

describe("earlierVersions()", () => {
  test("are the latest multiples, and version 0 alone at first", () => {
    assert.deepEqual(earlierVersions(past, 0), [0]);
    assert.deepEqual(earlierVersions(past, 4), [0]);
    assert.deepEqual(earlierVersions(past, 12), [0, 5, 10]);
    assert.deepEqual(earlierVersions(past, 15), [5, 10, 15]);
  });

  test("take places from each other only as a newer one comes: no two that are served share a model", () => {
    for (let newest = 0; newest < 60; newest++) {
      const versions = earlierVersions(past, newest);
      assert.equal(
        new Set(versions.map((version) => (version / past.every) % past.size)).size,
        versions.length,
      );
    }
  });
});

describe("earlierVersionFor()", () => {
  test("gives all rollouts of a group one opponent, and the tasks of a step each of them", () => {
    const chosen = Array.from({ length: 64 }, (_, task) => earlierVersionFor(run, past, slot(task), 12));
    assert.deepEqual(new Set(chosen), new Set([0, 5, 10]));
    for (const [task, version] of chosen.entries()) {
      assert.equal(earlierVersionFor(run, past, slot(task, 3), 12), version);
    }
  });
});

describe("rolePlayers()", () => {
  test("name the model of each role: the run's own, that of a policy, or a pinned earlier version", () => {
    const players = rolePlayers(run, { slot: slot(0), lowestVersion: 7, highestVersion: 8 });
    const version = earlierVersionFor(run, past, slot(0), 8);
    assert.deepEqual(players, [
      { role: "own", model: "test-1", isLearning: true, lowestVersion: 7, highestVersion: 8 },
      {
        role: "past",
        model: `test-1_past_${(version / 5) % 3}`,
        isLearning: false,
        lowestVersion: version,
        highestVersion: version,
      },
      { role: "rival", model: "test-1_rival", isLearning: true, lowestVersion: 7, highestVersion: 8 },
    ]);
  });
});

describe("lessonsOf()", () => {
  test("are one lesson of whole rollouts where the run names no roles", () => {
    const groups = [{ task: 0, rollouts: [] }];
    assert.deepEqual(lessonsOf(testConfig(), groups), [{ policy: undefined, groups }]);
  });
});

test("runOfLearner() has the policy's own settings, and the run's where it has none", () => {
  const { trainer } = runOfLearner(run, "rival").config;
  assert.deepEqual([trainer.epochs, trainer.minibatches], [7, run.config.trainer.minibatches]);
  assert.throws(() => runOfLearner(run, "past"), /the run trains no policy "past"/);
});
