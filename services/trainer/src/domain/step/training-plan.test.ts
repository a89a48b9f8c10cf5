import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Credit, CreditedRollout, Sample } from "@hone/rl";
import { testConfig } from "../../testing/fake-run.ts";
import { planTraining } from "./training-plan.ts";

function sample(sampledTokens: number): Sample {
  return {
    tokenIds: new Uint32Array(sampledTokens + 1),
    lossMask: Uint8Array.from({ length: sampledTokens + 1 }, (_, i) => (i === 0 ? 0 : 1)),
    logprobs: new Float32Array(sampledTokens),
    versions: [{ version: 0, tokenCount: sampledTokens }],
  };
}

function credited(task: number, index: number, advantage: number, samples: Sample[]): CreditedRollout {
  const slot = { split: "train", step: 1, task, index } as const;
  return {
    rollout: { slot, attempt: 1, outcome: "completed", scores: [], samples, metrics: {}, turnCount: 1 },
    reward: 0,
    advantage,
  };
}

const CREDIT: Credit = {
  groups: [
    { task: 0, rollouts: [credited(0, 0, 1, [sample(2), sample(1)]), credited(0, 1, -1, [sample(1)])] },
    { task: 1, rollouts: [credited(1, 0, 0, [sample(4)]), credited(1, 1, 0, [sample(4)])] },
  ],
  leftOut: [],
  emptyGroupCount: 0,
  metrics: {},
};

function config(minibatches: number, entropy = 0) {
  const base = testConfig({ algorithm: { loss: { kind: "ppo_clip", entropy } } });
  return { ...base, trainer: { ...base.trainer, minibatches } };
}

describe("planTraining()", () => {
  test("skips a minibatch without any advantage", () => {
    const [first, second] = planTraining(CREDIT, config(2));
    assert.equal(first?.samples.length, 3);
    assert.equal(second?.samples.length, 0);
    assert.equal(second?.rollouts.length, 2);
  });

  test("gives the tokens of each turn their advantage, and trains a rollout of which only one turn has one", () => {
    const base = credited(0, 0, 0, [sample(3)]);
    const turns = [
      { sample: 0, begin: 1, end: 3 },
      { sample: 0, begin: 3, end: 4 },
    ];
    const turned = { ...base, rollout: { ...base.rollout, turns }, turnAdvantages: [0, -0.5] };
    const groups = [{ task: 0, rollouts: [turned, credited(0, 1, 0, [sample(1)])] }];
    const [only] = planTraining({ ...CREDIT, groups }, config(1));
    assert.deepEqual(
      only?.samples.map(({ advantages }) => [...advantages]),
      [[0, 0, -0.5]],
    );
  });

  test("does not train rollouts without an advantage, but counts them in the weights", () => {
    const [only] = planTraining(CREDIT, config(1));
    assert.deepEqual(
      only?.samples.map(({ weights }) => weights[0]),
      [1 / 12, 1 / 12, 1 / 12].map(Math.fround),
    );
  });

  test("trains every rollout where an entropy bonus gives every token a gradient", () => {
    const plan = planTraining(CREDIT, config(2, 0.01));
    assert.deepEqual(
      plan.map(({ samples }) => samples.length),
      [3, 2],
    );
  });

  test("trains every rollout where the loss reads more than advantages", () => {
    const base = config(2);
    const algorithm = testConfig({ algorithm: { loss: { kind: "kimi15" } } }).algorithm;
    assert.deepEqual(
      planTraining(CREDIT, { ...base, algorithm }).map(({ samples }) => samples.length),
      [3, 2],
    );
  });

  test("keeps the order of the slots", () => {
    const [only] = planTraining(CREDIT, config(1, 0.01));
    assert.deepEqual(
      only?.samples.map(({ credited: { rollout } }) => `${rollout.slot.task}.${rollout.slot.index}`),
      ["0.0", "0.0", "0.1", "1.0", "1.1"],
    );
  });
});
