import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { assignCredit } from "../../credit.ts";
import type { Rollout } from "../../rollout.ts";
import { rolloutOf } from "../../testing.ts";
import { algorithmSchema } from "../schema.ts";
import { distillationAdvantages, teaches } from "./distillation.ts";

describe("distillationAdvantages()", () => {
  test("adds up what each teacher finds likelier, by its coefficient", () => {
    const teachers = [
      { coefficient: 1, logprobs: [-1, -2] },
      { coefficient: 0.5, logprobs: [-3, -2] },
    ];
    assert.deepEqual([...distillationAdvantages([-2, -2], teachers, "k1")], [0.5, 0]);
  });

  test("with a kind that is never negative, takes off for every distance", () => {
    const teachers = [{ coefficient: 2, logprobs: [-1, -3] }];
    assert.deepEqual([...distillationAdvantages([-2, -2], teachers, "k2")], [-1, -1]);
  });
});

describe("teaches()", () => {
  test("a teacher scores the tasks whose rows have all of its values", () => {
    const where = { data_source: "gsm8k", level: 2 };
    assert.equal(teaches({ where }, { data_source: "gsm8k", level: 2, id: 7 }), true);
    assert.equal(teaches({ where }, { data_source: "gsm8k", level: "2" }), false);
    assert.equal(teaches({ where }, { level: 2 }), false);
    assert.equal(teaches({}, {}), true);
  });
});

describe("distillation in the credit of a step", () => {
  const rollouts = [rolloutOf(0, 0, 1), rolloutOf(0, 1, 0)];
  const taught = new Map<Rollout, Float64Array>(
    rollouts.map((rollout) => [rollout, Float64Array.of(0.5, -1)]),
  );
  const creditWith = (distillation: Record<string, unknown>) =>
    assignCredit(
      [{ task: 0, rollouts }],
      algorithmSchema.parse({
        advantage: { kind: "rloo" },
        distillation: { teachers: [{}], ...distillation },
      }),
      { taught },
    ).groups[0]!.rollouts.map(({ advantage, tokenAdvantages, reward }) => ({
      advantage,
      reward,
      tokens: [...tokenAdvantages!],
    }));

  test("adds to the advantage of each token", () => {
    assert.deepEqual(creditWith({}), [
      { advantage: 0.75, reward: 1, tokens: [1.5, 0] },
      { advantage: -1.25, reward: 0, tokens: [-0.5, -2] },
    ]);
  });

  test("without rewards, a rollout that no teacher scores is worth nothing", () => {
    const algorithm = { advantage: { kind: "rloo" }, distillation: { teachers: [{}], useRewards: false } };
    const { groups } = assignCredit([{ task: 0, rollouts }], algorithmSchema.parse(algorithm), {
      taught: new Map(),
    });
    assert.deepEqual(
      groups[0]!.rollouts.map(({ advantage, tokenAdvantages }) => [advantage, tokenAdvantages]),
      [
        [0, undefined],
        [0, undefined],
      ],
    );
  });

  test("without rewards, is all that a token is worth", () => {
    const alone = { advantage: -0.25, tokens: [0.5, -1] };
    assert.deepEqual(creditWith({ useRewards: false }), [
      { ...alone, reward: 1 },
      { ...alone, reward: 0 },
    ]);
  });
});
