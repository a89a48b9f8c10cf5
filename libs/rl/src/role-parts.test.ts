import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { rewardOf, turnRewardsOf } from "./rewards.ts";
import { groupsOfRole, partOfRole, placeOfSample } from "./role-parts.ts";
import type { Rollout } from "./rollout.ts";
import { rolloutOf, sampleOf } from "./testing.ts";

const RULES = { truncated: "keep", agentFailed: "drop", timedOut: "drop" } as const;

/** Two roles in turn, and a third sample of no role; a turn that is not trained is in none. */
const shared: Rollout = rolloutOf(0, 0, 0.5, {
  samples: [{ ...sampleOf(2), role: "white" }, { ...sampleOf(3), role: "black" }, sampleOf(1)],
  turnCount: 5,
  turns: [
    { sample: 0, begin: 1, end: 2 },
    { sample: 1, begin: 1, end: 2 },
    { sample: 3, begin: 0, end: 0 },
    { sample: 1, begin: 2, end: 4 },
    { sample: 2, begin: 1, end: 2 },
  ],
  scores: [
    {
      judge: "environment",
      weight: 2,
      value: 0.5,
      roleValues: { white: 1, black: 0 },
      turnRewards: [
        { turn: 0, value: 7 },
        { turn: 3, value: 9 },
      ],
    },
    { judge: "manners", weight: 1, value: 3, roles: ["black"] },
  ],
});

describe("partOfRole()", () => {
  test("has the samples and turns of the role, with their places in the part", () => {
    const black = partOfRole(shared, "black");
    assert.deepEqual(black.samples, [shared.samples[1]]);
    assert.deepEqual(black.turns, [
      { sample: 0, begin: 1, end: 2 },
      { sample: 0, begin: 2, end: 4 },
    ]);
    assert.equal(black.turnCount, 2);
    assert.equal(black.role, "black");
  });

  test("is worth what the role earned: its own values, and no score that is for other roles", () => {
    assert.equal(rewardOf(partOfRole(shared, "white"), RULES), 2);
    assert.equal(rewardOf(partOfRole(shared, "black"), RULES), 3);
    assert.equal(rewardOf(partOfRole(shared, undefined), RULES), 4, "the rollout as a whole");
  });

  test("has the rewards of its own turns", () => {
    assert.deepEqual(turnRewardsOf(partOfRole(shared, "black"), RULES), [0, 18]);
    assert.deepEqual(turnRewardsOf(partOfRole(shared, "white"), RULES), [14]);
    assert.equal(turnRewardsOf(partOfRole(shared, undefined), RULES), undefined);
  });

  test("leaves no sample out: each is in the part of its role alone", () => {
    const parts = ["white", "black", undefined].map((role) => partOfRole(shared, role));
    assert.deepEqual(
      parts.flatMap(({ samples }) => samples),
      shared.samples,
    );
  });

  test("keeps the outcome, so that a failure of the rollout is one of each role", () => {
    const failed = { ...shared, outcome: "infra_failed" } as const;
    assert.equal(rewardOf(partOfRole(failed, "white"), RULES), undefined);
  });
});

describe("placeOfSample()", () => {
  test("is the sample's place in the whole rollout, also from a part", () => {
    assert.equal(placeOfSample(partOfRole(shared, "black"), 0), 1);
    assert.equal(placeOfSample(partOfRole(shared, undefined), 0), 2);
    assert.equal(placeOfSample(shared, 1), 1);
  });
});

describe("groupsOfRole()", () => {
  test("leaves out the groups in which the role played nothing", () => {
    const other = rolloutOf(1, 0, 1);
    const groups = [
      { task: 0, rollouts: [shared, shared] },
      { task: 1, rollouts: [other, other] },
    ];
    assert.deepEqual(
      groupsOfRole(groups, "white").map(({ task, rollouts }) => [task, rollouts.length]),
      [[0, 2]],
    );
    assert.deepEqual(
      groupsOfRole(groups, undefined).map(({ task }) => task),
      [0, 1],
    );
  });

  test("parts the baseline, too", () => {
    const [group] = groupsOfRole([{ task: 0, rollouts: [shared], baseline: shared }], "white");
    assert.equal(group?.baseline?.role, "white");
  });
});
