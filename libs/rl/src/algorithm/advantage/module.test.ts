import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { rolloutOf } from "../../testing.ts";
import { algorithmSchema } from "../schema.ts";
import type { RewardedGroup } from "./advantage.ts";
import { type UserAdvantage, UserAdvantageError } from "./module.ts";
import { comparesGroup, computeAdvantages } from "./registry.ts";

const STEP: RewardedGroup[] = [0, 1].map((task) => ({
  task,
  rollouts: [0, 1].map((index) => {
    const reward = task + index;
    return { rollout: rolloutOf(task, index, reward), reward, turnRewards: undefined };
  }),
}));

const configOf = (more: Record<string, unknown> = {}) =>
  algorithmSchema.parse({ advantage: { kind: "module", path: "./own.ts", ...more } }).advantage;
const compute = (own: UserAdvantage, more?: Record<string, unknown>) =>
  computeAdvantages(STEP, configOf(more), own);

describe("an advantage algorithm of the user", () => {
  const minusBaseline: UserAdvantage = (step, { baseline = 0 }) => ({
    groups: step.map(({ rollouts }) =>
      rollouts.map(({ reward }) => ({ advantage: reward - Number(baseline) })),
    ),
    metrics: { baseline },
  });

  test("gets the step with the options of the run file, and its advantages are used", () => {
    const { groups, metrics } = compute(minusBaseline, { options: { baseline: 1 } });
    assert.deepEqual(
      groups.map((group) => group.map(({ advantage }) => advantage)),
      [
        [-1, 0],
        [0, 1],
      ],
    );
    assert.equal(metrics?.baseline, 1);
  });

  test("is clipped like any other", () => {
    const { groups } = compute(minusBaseline, { clip: 0.5 });
    assert.deepEqual(
      groups.map((group) => group.map(({ advantage }) => advantage)),
      [
        [0, 0.5],
        [0.5, 0.5],
      ],
    );
  });

  test("may be used with groups of one", () => assert.equal(comparesGroup(configOf()), false));

  const REFUSED: readonly [what: string, own: UserAdvantage, message: RegExp][] = [
    [
      "throws",
      () => {
        throw new Error("no baseline");
      },
      /computeAdvantages of \.\/own\.ts failed: no baseline/,
    ],
    ["returns nothing", () => undefined, /must return/],
    ["returns a promise", async () => ({ groups: [] }), /must return/],
    ["leaves a group out", () => ({ groups: [[]] }), /returned 1 groups for a step of 2/],
    [
      "leaves a rollout out",
      (step) => ({ groups: step.map(() => []) }),
      /0 advantages for group 0 \(task 0\), which has 2 rollouts/,
    ],
    [
      "returns something that is not a number",
      (step) => ({ groups: step.map(({ rollouts }) => rollouts.map(() => ({ advantage: Number.NaN }))) }),
      /must return/,
    ],
    [
      "returns too many advantages of tokens",
      (step) => ({
        groups: step.map(({ rollouts }) =>
          rollouts.map(() => ({ advantage: 0, tokenAdvantages: new Float64Array(1_000) })),
        ),
      }),
      /rollout 0 of group 0 \(task 0\): it has 1000 token advantages and must have/,
    ],
    [
      "returns too few advantages of turns",
      (step) => ({
        groups: step.map(({ rollouts }) => rollouts.map(() => ({ advantage: 0, turnAdvantages: [] }))),
      }),
      /it has 0 turn advantages and must have 1/,
    ],
  ];
  for (const [what, own, message] of REFUSED) {
    test(`is refused with a reason where it ${what}`, () => {
      assert.throws(
        () => compute(own),
        (error: unknown) => error instanceof UserAdvantageError && message.test(error.message),
      );
    });
  }
});
