import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { assignCredit } from "../../credit.ts";
import { rolloutOf, sampleOf } from "../../testing.ts";
import { estimateKl } from "../kl/estimators.ts";
import { filterFlatGroups } from "../sampling/flat-groups.ts";
import { algorithmSchema } from "../schema.ts";
import { adaptKlCoefficient, klRewards, meanKl } from "./kl-penalty.ts";
import { lengthPenalty } from "./length-penalty.ts";
import { addBatch, NO_MOMENTS, stdOf } from "./moments.ts";
import { normalizeRewards } from "./normalize.ts";

const NORM = { epsilon: 1e-6 };

describe("normalizeRewards()", () => {
  test("subtracts the mean and divides by the given deviation", () => {
    const rewards = [0, 2, 10, 10];
    const groups = ["a", "a", "b", "b"];
    assert.deepEqual(
      normalizeRewards(rewards, { groups }, { mean: "group", std: "none", ...NORM }),
      [-1, 1, 0, 0],
    );
    assert.deepEqual(
      normalizeRewards(rewards, { groups }, { mean: "batch", std: "none", ...NORM }),
      [-5.5, -3.5, 4.5, 4.5],
    );
    const byBatch = normalizeRewards(rewards, { groups }, { mean: "none", std: "batch", ...NORM });
    assert.equal(byBatch[0], 0);
    assert.ok(byBatch[2]! > 0 && byBatch[2] === byBatch[3]);
  });

  test("takes together what is of one environment", () => {
    const rewards = [0, 2, 10, 14];
    const belonging = { groups: [0, 1, 2, 3], environments: ["easy", "easy", "hard", "hard"] };
    assert.deepEqual(
      normalizeRewards(rewards, belonging, { mean: "environment", std: "none", ...NORM }),
      [-1, 1, -2, 2],
    );
    const scaled = normalizeRewards(rewards, belonging, { mean: "none", std: "environment", epsilon: 1e-12 });
    assert.ok(Math.abs(scaled[1]! - Math.SQRT2) < 1e-9 && Math.abs(scaled[3]! - 14 / Math.sqrt(8)) < 1e-9);
  });

  test("gives 0 where a deviation is asked for and there is none", () => {
    const rewards = [0.1, 0.1, 0.1, 0.4];
    const groups = ["a", "a", "a", "b"];
    assert.deepEqual(
      normalizeRewards(rewards, { groups }, { mean: "none", std: "group", ...NORM }),
      [0, 0, 0, 0],
    );
  });
});

describe("lengthPenalty()", () => {
  test("grows over the buffer and stops at the limit", () => {
    const options = { limit: 20, buffer: 8, factor: 2 };
    assert.deepEqual(
      [0, 12, 16, 20, 100].map((count) => lengthPenalty(count, options)),
      [0, 0, -1, -2, -2],
    );
  });
});

describe("KL in the reward", () => {
  test("k3 is never negative and stops at 10", () => {
    assert.equal(estimateKl("k3", -1, -1), 0);
    assert.ok(estimateKl("k3", -1, -2) > 0);
    assert.equal(estimateKl("k3", -30, -1), 10);
    assert.equal(estimateKl("abs", -3, -1), 2);
  });

  test("the coefficient follows the distance, a fifth at most for n = horizon", () => {
    const adaptive = { target: 0.1, horizon: 100 };
    assert.ok(Math.abs(adaptKlCoefficient(1, 5, 100, adaptive) - 1.2) < 1e-12);
    assert.ok(Math.abs(adaptKlCoefficient(1, 0, 100, adaptive) - 0.8) < 1e-12);
    assert.equal(adaptKlCoefficient(1, 0.1, 100, adaptive), 1);
    assert.equal(meanKl([[1, 3], [4], []]), 2);
    assert.deepEqual(
      [...klRewards([-1, -2, -3], [-2, -2, -1], { coefficient: 0.5, kind: "k1" })],
      [-0.5, 0, 1],
    );
  });
});

describe("moments", () => {
  test("batch by batch they are those of all numbers", () => {
    const both = addBatch(addBatch(addBatch(NO_MOMENTS, [1, 2]), []), [6, 7]);
    const all = addBatch(NO_MOMENTS, [1, 2, 6, 7]);
    assert.deepEqual([both.count, both.mean], [all.count, all.mean]);
    assert.ok(Math.abs(stdOf(both) - stdOf(all)) < 1e-12);
    assert.equal(stdOf(NO_MOMENTS), 0);
  });
});

describe("filterFlatGroups()", () => {
  test("keeps groups that differ and groups of one, and counts the others by their figure", () => {
    const groups = [[0, 1], [1, 1], [0.1, 0.1, 0.1], [1, 1, 1], [0.5]];
    const { kept, flat, flatByFigure } = filterFlatGroups(groups, (group) => group);
    assert.deepEqual(kept, [[0, 1], [0.5]]);
    assert.equal(flat.length, 3);
    assert.deepEqual(
      [...flatByFigure],
      [
        [0.1, 1],
        [1, 2],
      ],
    );
  });
});

describe("algorithm.reward", () => {
  const group = [
    rolloutOf(0, 0, 1, { samples: [sampleOf(10)] }),
    rolloutOf(0, 1, 1, { samples: [sampleOf(2)] }),
  ];
  const creditOf = (reward: object) =>
    assignCredit(
      [{ task: 0, rollouts: group }],
      algorithmSchema.parse({ reward, advantage: { kind: "reinforce" } }),
    );

  test("changes what advantages are made of, and not the reward that the ledger keeps", () => {
    const { groups, metrics } = creditOf({ overlong: { limit: 10, buffer: 5 } });
    assert.deepEqual(
      groups[0]!.rollouts.map(({ reward, advantage }) => [reward, advantage]),
      [
        [1, 0],
        [1, 1],
      ],
    );
    assert.deepEqual(metrics, { "reward/length_penalty/mean": -0.5 });
  });

  test("adds what single tokens earn, as their sum or on each of them", () => {
    const [first, second] = group;
    const ofTokens = new Map([
      [first!, Float64Array.from({ length: 10 }, () => -0.1)],
      [second!, Float64Array.of(-0.5, 0.25)],
    ]);
    const advantagesOf = (advantage: object) =>
      assignCredit([{ task: 0, rollouts: group }], algorithmSchema.parse({ advantage }), {
        tokenRewards: ofTokens,
      }).groups[0]!.rollouts;
    const compared = advantagesOf({ kind: "grpo", normalizeByStd: false });
    compared.forEach(({ advantage, reward }, i) => {
      assert.ok(Math.abs(advantage - [-0.375, 0.375][i]!) < 1e-12);
      assert.equal(reward, 1, "the ledger keeps what the judges gave");
    });
    const followed = advantagesOf({ kind: "reinforce" })[1]!;
    assert.deepEqual([...followed.tokenAdvantages!], [0.75, 1.25]);
  });

  test("takes its steps in order: length, normalisation, clipping", () => {
    const { groups, metrics } = creditOf({
      overlong: { limit: 10, buffer: 5, factor: 4 },
      normalize: { mean: "batch", std: "none" },
      clip: 1.5,
    });
    assert.deepEqual(
      groups[0]!.rollouts.map(({ advantage }) => advantage),
      [-1.5, 1.5],
    );
    assert.equal(metrics["reward/clipped/share"], 1);
  });

  test("is not there where the run file does not name it", () => {
    const { groups, metrics } = creditOf({});
    assert.deepEqual(
      groups[0]!.rollouts.map(({ advantage }) => advantage),
      [1, 1],
    );
    assert.deepEqual(metrics, {});
  });
});
