import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Rollout, TurnSpan } from "../../rollout.ts";
import { rolloutOf } from "../../testing.ts";
import { algorithmSchema } from "../schema.ts";
import type { RewardedGroup, RewardedRollout } from "./advantage.ts";
import { type AdvantageConfig, comparesGroup, computeAdvantages } from "./registry.ts";

/* What holds for every algorithm, and for each its own. The numbers of verl and ROLL are in ../conformance. */

/** Each of its turns has `tokens` sampled tokens, after one token that was not. */
function rewarded(
  index: number,
  reward: number,
  { turnRewards, tokens = 2, states }: { turnRewards?: number[]; tokens?: number; states?: string[] } = {},
): RewardedRollout {
  const turnCount = turnRewards?.length ?? states?.length ?? 1;
  const turns: TurnSpan[] = Array.from({ length: turnCount }, (_, turn) => {
    const begin = turn * (tokens + 1) + 1;
    return { sample: 0, begin, end: begin + tokens, ...(states && { state: states[turn]! }) };
  });
  const lossMask = new Uint8Array(turnCount * (tokens + 1));
  for (const { begin, end } of turns) lossMask.fill(1, begin, end);
  const sample = {
    tokenIds: Array.from(lossMask, (_, position) => position),
    lossMask,
    logprobs: Array.from({ length: turnCount * tokens }, () => -1),
    versions: [],
  };
  return {
    rollout: rolloutOf(0, index, reward, { samples: [sample], turns, turnCount }),
    reward,
    turnRewards,
  };
}

function config(advantage: Record<string, unknown>): AdvantageConfig {
  return algorithmSchema.parse({ advantage }).advantage;
}

const groupOf = (...rollouts: RewardedRollout[]): RewardedGroup => ({ task: 0, rollouts });
const ofRewards = (...rewards: number[]) =>
  groupOf(...rewards.map((reward, index) => rewarded(index, reward)));

function advantages(step: readonly RewardedGroup[], advantage: Record<string, unknown>): number[][] {
  return computeAdvantages(step, config(advantage)).groups.map((group) =>
    group.map((each) => each.advantage),
  );
}

const KINDS = ["grpo", "grpo_passk", "gdpo", "rloo", "opo", "gpg", "reinforce_plus_plus_baseline", "gigpo"];

describe("algorithms that compare the rollouts of a group", () => {
  for (const kind of KINDS) {
    test(`${kind} gives exactly 0 to a group of one and to equal rewards`, () => {
      assert.ok(comparesGroup(config({ kind })));
      assert.deepEqual(advantages([ofRewards(0.7), ofRewards(0.1, 0.1, 0.1)], { kind }), [[0], [0, 0, 0]]);
    });

    test(`${kind} does not change when all rewards of a group rise by the same`, () => {
      const options = kind === "gpg" ? [3, 1, 2, 5] : [0, 1, 2, 5];
      const before = advantages([ofRewards(...options)], { kind }).flat();
      const after = advantages([ofRewards(...options.map((reward) => reward + 8))], { kind }).flat();
      before.forEach((value, index) => {
        assert.ok(Math.abs(value - after[index]!) < 1e-9, `${kind}: ${value} became ${after[index]}`);
      });
    });
  }

  test("gdpo distinguishes rollouts whose parts differ although their sums are equal", () => {
    const parts = (a: number, b: number) => [
      { name: "a", weight: 3, value: a },
      { name: "b", weight: 1, value: b },
    ];
    const step = [
      groupOf(
        { ...rewarded(0, 3), components: parts(1, 0) },
        { ...rewarded(1, 3), components: parts(0, 3) },
        { ...rewarded(2, 3), components: parts(0, 3) },
      ),
    ];
    assert.deepEqual(advantages(step, { kind: "grpo" }), [[0, 0, 0]]);
    const [[best, other]] = advantages(step, { kind: "gdpo" }) as [number[]];
    assert.ok(best! > 0 && other! < 0, `${best}, ${other}`);
  });

  test("gdpo counts a fixed reward in each part so that their sum is the reward", () => {
    const parts = (a: number, b: number) => [
      { name: "a", weight: 1, value: a },
      { name: "b", weight: 3, value: b },
    ];
    const step = [
      groupOf({ ...rewarded(0, 8), components: parts(2, 2) }, { ...rewarded(1, 8), components: undefined }),
    ];
    assert.deepEqual(advantages(step, { kind: "gdpo" }), [[0, 0]]);
  });

  test("grpo_passk reinforces the best alone, and nobody where two are best", () => {
    const options = { kind: "grpo_passk", normalizeByStd: false };
    assert.deepEqual(advantages([ofRewards(0, 3, 1), ofRewards(2, 0, 2)], options), [
      [0, 2, 0],
      [0, 0, 0],
    ]);
  });
});

describe("algorithms that compare nothing", () => {
  test("reinforce gives every token the rewards that follow it, discounted by sampled tokens", () => {
    const step = [groupOf(rewarded(0, 4, { turnRewards: [1, 4] }))];
    const compute = (options: object) => {
      const { parts: _, ...found } = computeAdvantages(step, config({ kind: "reinforce", ...options }))
        .groups[0]![0]!;
      return found;
    };
    assert.deepEqual(compute({}), { advantage: 4 });
    assert.deepEqual(compute({ credit: "turns" }), { advantage: 4.5, turnAdvantages: [5, 4] });
    const { tokenAdvantages } = compute({ credit: "turns", gamma: 0.5 });
    assert.deepEqual([...tokenAdvantages!], [1, 2, 2, 4]);
  });

  test("agentic_reinforce discounts by turns", () => {
    const step = [groupOf(rewarded(0, 4, { turnRewards: [1, 4] }))];
    const options = config({ kind: "agentic_reinforce", credit: "turns", gamma: 0.5 });
    const found = computeAdvantages(step, options).groups[0]![0]!;
    assert.deepEqual(found.turnAdvantages, [3, 4]);
  });

  test("reinforce_plus_plus takes the step's mean over tokens as the baseline", () => {
    const step = [groupOf(rewarded(0, 1, { tokens: 3 })), groupOf(rewarded(1, 0, { tokens: 1 }))];
    const [[long], [short]] = advantages(step, { kind: "reinforce_plus_plus" }) as [[number], [number]];
    assert.ok(Math.abs(3 * long + short) < 1e-12, `${long}, ${short}`);
    assert.ok(long > 0 && short < 0);
  });

  test("a turn without trained tokens leaves its reward to the token before it", () => {
    const { rollout } = rewarded(0, 0, { turnRewards: [1, 4] });
    const [first] = rollout.turns!;
    const hidden: Rollout = {
      ...rollout,
      turnCount: 3,
      turns: [first!, { sample: 1, begin: 0, end: 0 }, rollout.turns![1]!],
    };
    const step = [groupOf({ rollout: hidden, reward: 0, turnRewards: [1, 2, 4] })];
    const { groups } = computeAdvantages(step, config({ kind: "reinforce", credit: "turns" }));
    assert.deepEqual(
      groups[0]![0]!.turnAdvantages?.filter((_, turn) => turn !== 1),
      [7, 4],
    );
  });

  test("tokens of two samples follow the order of the turns", () => {
    const sample = {
      tokenIds: [0, 1, 2, 3],
      lossMask: Uint8Array.of(0, 1, 0, 1),
      logprobs: [-1, -1],
      versions: [],
    };
    const turns = [
      { sample: 0, begin: 1, end: 2 },
      { sample: 1, begin: 1, end: 2 },
      { sample: 0, begin: 3, end: 4 },
      { sample: 1, begin: 3, end: 4 },
    ];
    const rollout = rolloutOf(0, 0, 0, { samples: [sample, sample], turns, turnCount: 4 });
    const step = [groupOf({ rollout, reward: 0, turnRewards: [1, 10, 100, 1000] })];
    const { groups } = computeAdvantages(step, config({ kind: "reinforce", credit: "turns", gamma: 0.1 }));
    const expected = [1 + 1 + 1 + 1, 10 + 10 + 10, 100 + 100, 1000];
    const found = groups[0]![0]!.turnAdvantages!;
    for (const [turn, value] of found.entries()) {
      assert.ok(Math.abs(value - expected[turn]!) < 1e-9, `${turn}: ${value}`);
    }
  });
});

describe("algorithms of turns", () => {
  test("gigpo compares turns that acted in the same state, wherever they stand", () => {
    const step = [
      groupOf(
        rewarded(0, 1, { turnRewards: [0, 1], states: ["start", "hall"] }),
        rewarded(1, 1, { turnRewards: [0, 0, 1], states: ["start", "hall", "hall"] }),
      ),
    ];
    const options = { kind: "gigpo", gamma: 0.5, normalizeByStd: false };
    const { groups, metrics } = computeAdvantages(step, config(options));
    const [first, second] = groups[0]!;
    // start: 0.5 and 0.25. hall: 1, 0.5 and 1.
    assert.deepEqual(
      first!.turnAdvantages?.map((each) => each.toFixed(4)),
      ["0.1250", "0.1667"],
    );
    assert.deepEqual(
      second!.turnAdvantages?.map((each) => each.toFixed(4)),
      ["-0.1250", "-0.3333", "0.1667"],
    );
    assert.deepEqual(metrics, {
      "state_size/mean": 2.5,
      "state_size/max": 3,
      "state_size/min": 2,
      "state_alone/share": 0,
    });
  });

  test("gigpo knows a state by the tokens that were shown where no environment names it", () => {
    const step = [groupOf(rewarded(0, 1, { turnRewards: [1] }), rewarded(1, 0, { turnRewards: [0] }))];
    const { groups } = computeAdvantages(
      step,
      config({ kind: "gigpo", normalizeByStd: false, episodeWeight: 0 }),
    );
    assert.deepEqual(
      groups[0]!.map(({ turnAdvantages }) => turnAdvantages),
      [[0.5], [-0.5]],
    );
  });

  test("step_reinforce compares all turns of a group, and a fixed reward stands at the last", () => {
    const fixed = { ...rewarded(1, -2, { states: ["a", "b"] }), turnRewards: undefined };
    const step = [groupOf(rewarded(0, 0, { turnRewards: [2, 4] }), fixed)];
    const options = { kind: "step_reinforce", gamma: 1, normalize: { std: "none" } };
    const { groups } = computeAdvantages(step, config(options));
    // Returns: 6, 4, -2 and -2, whose mean is 1.5.
    assert.deepEqual(
      groups[0]!.map(({ turnAdvantages }) => turnAdvantages),
      [
        [4.5, 2.5],
        [-3.5, -3.5],
      ],
    );
  });
});

describe("what every algorithm has", () => {
  test("whiten makes the mean over tokens 0 and their variance 1", () => {
    const step = [ofRewards(0, 1, 5), groupOf(rewarded(0, 3, { tokens: 6 }), rewarded(1, 1))];
    const { groups } = computeAdvantages(step, config({ kind: "reinforce", whiten: true }));
    const counts = [2, 2, 2, 6, 2];
    const values = groups.flat().map(({ advantage }) => advantage);
    const total = counts.reduce((sum, count) => sum + count, 0);
    const mean = values.reduce((sum, value, i) => sum + value * counts[i]!, 0) / total;
    const variance =
      values.reduce((sum, value, i) => sum + (value - mean) ** 2 * counts[i]!, 0) / (total - 1);
    assert.ok(Math.abs(mean) < 1e-12 && Math.abs(variance - 1) < 1e-6, `${mean}, ${variance}`);
  });

  test("clip keeps advantages within the bound and reports the share of clipped tokens", () => {
    const step = [ofRewards(0, 1, 5, -3)];
    const { groups, metrics } = computeAdvantages(step, config({ kind: "reinforce", clip: 2 }));
    assert.deepEqual(
      groups[0]!.map(({ advantage }) => advantage),
      [0, 1, 2, -2],
    );
    assert.equal(metrics?.["clipped/share"], 0.5);
  });

  test("gae says what the critic is to predict, which whitening leaves as it is", () => {
    const values = [0.5, 0.25];
    const step = [ofRewards(1, 0)].map(({ task, rollouts }) => ({
      task,
      rollouts: rollouts.map((each, index) => ({ ...each, values: [values[index]!, values[index]!] })),
    }));
    const of = (options: object) => computeAdvantages(step, config({ kind: "gae", ...options })).groups[0]!;
    const worth = (options: object) => of(options).map(({ advantage }) => advantage);
    const returns = (options: object) => of(options).map((each) => Array.from(each.returns!));
    assert.deepEqual(worth({ whiten: false }), [0.5, -0.25]);
    assert.notDeepEqual(worth({}), [0.5, -0.25]);
    for (const whiten of [true, false])
      assert.deepEqual(returns({ whiten }), [
        [1, 1],
        [0, 0],
      ]);
    assert.throws(
      () => computeAdvantages([ofRewards(0, 1)], config({ kind: "gae" })),
      /gae needs the values of a critic, and rollout 0 of task 0 has none/,
    );
  });
});
