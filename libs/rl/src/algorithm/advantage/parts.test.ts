/** The parts of advantages, for the record of trained tokens: each is what the rewards of its kind alone make of the tokens. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { rolloutOf } from "../../testing.ts";
import { algorithmSchema } from "../schema.ts";
import type { RewardedGroup, RewardedRollout } from "./advantage.ts";
import { tokensOfAdvantage } from "./parts.ts";
import { makeAdvantages } from "./registry.ts";

const TOKENS = 4;
const REWARDS = [1, 0, 0.5, 2];

interface Kinds {
  readonly turns?: boolean;
  readonly kl?: boolean;
}

/** Four rollouts of two turns with two tokens each. */
function group({ turns = false, kl = false }: Kinds = {}): RewardedGroup {
  return {
    task: 0,
    baselineReward: 0.25,
    rollouts: REWARDS.map((reward, index): RewardedRollout => {
      const tokenRewards = Float64Array.from({ length: TOKENS }, (_, token) => -0.1 * (token + index));
      const sum = tokenRewards.reduce((total, each) => total + each, 0);
      return {
        rollout: rolloutOf(0, index, reward, {
          samples: [
            {
              tokenIds: [0, 1, 2, 3, 4, 5],
              lossMask: Uint8Array.of(0, 1, 1, 0, 1, 1),
              logprobs: [-0.5, -1, -1.5, -0.7],
              versions: [],
            },
          ],
          turnCount: 2,
          turns: [
            { sample: 0, begin: 1, end: 3, state: "s" },
            { sample: 0, begin: 4, end: 6, state: "s" },
          ],
        }),
        reward: reward + (kl ? sum : 0),
        ...(kl && { tokenRewards }),
        turnRewards: turns ? [0.1 * index, 0.3] : undefined,
        values: Float64Array.of(0.1, 0.2, 0.3, 0.4),
        sumsOfSquares: Float64Array.of(0.5, 0.5, 0.5, 0.5),
      };
    }),
  };
}

const made = (rewarded: RewardedGroup, advantage: Record<string, unknown>) =>
  makeAdvantages([rewarded], algorithmSchema.parse({ advantage }).advantage).groups[0]!;

const at = (values: number | ArrayLike<number>, token: number) =>
  typeof values === "number" ? values : values[token]!;

function near(found: number, wanted: number, what: string): void {
  assert.ok(Math.abs(found - wanted) < 1e-9, `${what}: ${found}, expected ${wanted}`);
}

describe("the parts of an advantage", () => {
  const turnRewards = { weight: 0.5, episodeWeight: 2 };
  for (const advantage of [
    { kind: "grpo" },
    { kind: "grpo", normalizeByStd: false, turnRewards },
    { kind: "rloo", turnRewards },
    { kind: "opo" },
    { kind: "gpg", norm: 2 },
    { kind: "grpo_passk" },
    { kind: "reinforce_plus_plus_baseline" },
    { kind: "gigpo", episodeWeight: 2, weight: 0.5 },
  ] as const) {
    test(`${JSON.stringify(advantage)}: the episode's part is its reward less the mean, by the scale`, () => {
      const hasTurns = "turnRewards" in advantage || advantage.kind === "gigpo";
      const rewarded = group({ turns: hasTurns, kl: true });
      const factor = hasTurns ? 2 : 1;
      made(rewarded, advantage).forEach((worth, i) => {
        const { mean = Number.NaN, scale = Number.NaN, turns = 0, kl = 0 } = worth.parts!;
        const { reward, rollout, tokenRewards } = rewarded.rollouts[i]!;
        const ofTokens = Array.from(tokenRewards!).reduce((sum, each) => sum + each, 0);
        tokensOfAdvantage(rollout, worth).forEach((all, token) => {
          const episode = all - at(turns, token) - at(kl, token);
          near(
            episode,
            (factor * (reward - ofTokens - at(mean, token))) / scale,
            `rollout ${i}, token ${token}`,
          );
        });
        if (hasTurns) assert.ok(typeof turns !== "number" && new Set(turns).size > 1, "turns have a part");
      });
    });
  }

  for (const [advantage, hasTurns] of [
    [{ kind: "reinforce", gamma: 0.9 }, false],
    [{ kind: "reinforce", gamma: 0.9, credit: "turns" }, true],
    [{ kind: "agentic_reinforce", gamma: 0.9, credit: "turns" }, true],
    [{ kind: "remax" }, false],
    [{ kind: "gae", gamma: 0.9, lambda: 0.8, credit: "turns" }, true],
    [{ kind: "optimal_token_baseline" }, false],
  ] as const) {
    test(`${JSON.stringify(advantage)}: a part is what changes where its rewards are left out`, () => {
      const whole = made(group({ turns: hasTurns, kl: true }), advantage);
      const silent = made(silenced(group({ turns: hasTurns, kl: true })), advantage);
      const takesBaseline = advantage.kind === "optimal_token_baseline";
      whole.forEach((worth, i) => {
        const { rollout } = group().rollouts[i]!;
        const [all, without] = [worth, silent[i]!].map((each) => tokensOfAdvantage(rollout, each)) as [
          Float64Array,
          Float64Array,
        ];
        const { turns = 0, kl = 0, mean = 0 } = worth.parts!;
        const { mean: meanWithout = 0 } = silent[i]!.parts!;
        all.forEach((value, token) => {
          // The optimal baseline follows the returns, so what it took off is added again.
          const [a, b] = takesBaseline
            ? [value + at(mean, token), without[token]! + at(meanWithout, token)]
            : [value, without[token]!];
          near(a - b, at(turns, token) + at(kl, token), `rollout ${i}, token ${token}`);
        });
        assert.ok(typeof kl !== "number", "the KL has a part");
        assert.equal(typeof turns !== "number", hasTurns);
      });
    });
  }

  /** The same without the rewards of turns and of single tokens. */
  function silenced({ rollouts, ...rest }: RewardedGroup): RewardedGroup {
    return {
      ...rest,
      rollouts: rollouts.map(({ tokenRewards, turnRewards, ...rewarded }) => ({
        ...rewarded,
        reward: rewarded.reward - Array.from(tokenRewards ?? []).reduce((sum, each) => sum + each, 0),
        turnRewards: turnRewards?.map(() => 0),
      })),
    };
  }

  test("what a critic takes off is the mean of gae", () => {
    const [worth] = made(group(), { kind: "gae", gamma: 1, lambda: 1 });
    const { mean } = worth!.parts!;
    for (const [token, value] of [0.1, 0.2, 0.3, 0.4].entries())
      near(at(mean!, token), value, `token ${token}`);
  });
});
