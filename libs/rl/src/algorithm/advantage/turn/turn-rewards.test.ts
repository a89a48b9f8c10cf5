import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome } from "@hone/core";
import { assignCredit } from "../../../credit.ts";
import type { Rollout, Score } from "../../../rollout.ts";
import { rolloutOf } from "../../../testing.ts";
import type { OutcomeRules } from "../../schema.ts";
import { groupRelative } from "../group/grpo.ts";
import { advantagesOfSample, hasAdvantage } from "../of-tokens.ts";
import type { AdvantageConfig } from "../registry.ts";
import { compareTurns } from "./turn-rewards.ts";

const DR_GRPO = { kind: "grpo", normalizeByStd: false, epsilon: 1e-6, whiten: false, clip: null } as const;
const compare = (rewards: readonly number[]) => groupRelative(rewards, DR_GRPO);
const RULES: OutcomeRules = { truncated: "keep", agentFailed: { reward: 0 }, timedOut: "drop" };
const algorithm = (advantage: AdvantageConfig) => ({ outcomes: RULES, reward: { clip: null }, advantage });
const WHOLE = { weight: 1, episodeWeight: 1, gamma: 1 };

function turned(advantage: number, turnRewards: number[] | undefined, turnCount = turnRewards?.length ?? 2) {
  return { advantage, turnRewards, turnCount };
}

/** A rollout of two calls in one sample of [prompt, a, a, observation, b], rewarded by a judge. */
function twoTurns(index: number, value: number, turnRewards: NonNullable<Score["turnRewards"]>): Rollout {
  return rolloutOf(0, index, 0, {
    scores: [{ judge: "steps", weight: 2, value, turnRewards }],
    samples: [
      {
        tokenIds: [0, 1, 2, 3, 4],
        lossMask: Uint8Array.of(0, 1, 1, 0, 1),
        logprobs: [-1, -1, -1],
        versions: [{ version: 0, tokenCount: 3 }],
      },
    ],
    turnCount: 2,
    turns: [
      { sample: 0, begin: 1, end: 3 },
      { sample: 0, begin: 4, end: 5 },
    ],
  });
}

describe("compareTurns()", () => {
  test("compares the discounted returns of equal turns, in addition to the episode's advantage", () => {
    const rules = { weight: 10, episodeWeight: 2, gamma: 0.5 };
    // Returns: 1 + 0.5 * 4 = 3 and 4; 1 and 0. Means: turn 0: 2, turn 1: 2.
    const group = [turned(0.25, [1, 4]), turned(-0.25, [1, 0])];
    assert.deepEqual(compareTurns(group, rules, compare), [
      [0.5 + 10 * 1, 0.5 + 10 * 2],
      [-0.5 - 10 * 1, -0.5 - 10 * 2],
    ]);
  });

  test("gives a turn that one rollout alone came to the episode's part only", () => {
    const advantages = compareTurns([turned(1, [0, 5]), turned(-1, [0])], WHOLE, compare);
    assert.deepEqual(advantages, [[1 + 2.5, 1], [-1 - 2.5]]);
  });

  test("compares no turns of a rollout that has none", () => {
    const advantages = compareTurns([turned(1, [3]), turned(0, undefined, 2)], WHOLE, compare);
    assert.deepEqual(advantages, [[1], [0, 0]]);
  });
});

describe("credit of turns", () => {
  const config = { ...DR_GRPO, turnRewards: WHOLE };

  test("is that of the episode for every token where the run wants none of turns", () => {
    const rollouts = [twoTurns(0, 1, [{ turn: 0, value: 1 }]), twoTurns(1, 0, [])];
    const [group] = assignCredit([{ task: 0, rollouts }], algorithm(DR_GRPO)).groups;
    assert.equal(group?.rollouts[0]?.turnAdvantages, undefined);
    assert.deepEqual([...advantagesOfSample(group!.rollouts[0]!, 0)], [1, 1, 1]);
  });

  test("keeps the episode's advantage apart and gives each turn's tokens their own", () => {
    const rollouts = [twoTurns(0, 0, [{ turn: 1, value: 1 }]), twoTurns(1, 0, [{ turn: 0, value: 1 }])];
    const [group] = assignCredit([{ task: 0, rollouts }], algorithm(config)).groups;
    const [first, second] = group!.rollouts;
    assert.deepEqual([first!.advantage, second!.advantage], [0, 0]);
    // Returns, by the judge's weight 2: [2, 2] and [2, 0].
    assert.deepEqual(
      [first!, second!].map((each) => [...advantagesOfSample(each, 0)]),
      [
        [0, 0, 1],
        [0, 0, -1],
      ],
    );
    assert.ok(hasAdvantage(first!));
  });

  test("leaves the turns of a rollout with a fixed reward out of the comparison", () => {
    const failed = {
      ...twoTurns(1, 0, [{ turn: 0, value: 9 }]),
      outcome: Outcome.agentFailed,
    };
    const rollouts = [twoTurns(0, 0, [{ turn: 0, value: 1 }]), failed];
    const [group] = assignCredit([{ task: 0, rollouts }], algorithm(config)).groups;
    assert.deepEqual(
      group!.rollouts.map(({ turnAdvantages }) => turnAdvantages),
      [
        [0, 0],
        [0, 0],
      ],
    );
    assert.ok(!group!.rollouts.some(hasAdvantage));
  });
});
