import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Credit, type CreditedRollout, MetricSet } from "@hone/rl";
import { assertClose } from "@hone/testing";
import { testConfig } from "../../testing/fake-run.ts";
import { correctPlan } from "./correct-plan.ts";
import type { TrainingEngine } from "./training-engine.ts";
import { planTraining } from "./training-plan.ts";

/** A rollout of one sample whose tokens were sampled at log-probability -1. */
function credited(index: number, tokenCount: number): CreditedRollout {
  const sample = {
    tokenIds: Uint32Array.from({ length: tokenCount + 1 }, (_, i) => i),
    lossMask: Uint8Array.from({ length: tokenCount + 1 }, (_, i) => Number(i > 0)),
    logprobs: new Float32Array(tokenCount).fill(-1),
    versions: [{ version: 0, tokenCount }],
  };
  const slot = { split: "train", step: 1, task: 0, index } as const;
  return {
    rollout: {
      slot,
      attempt: 1,
      outcome: "completed",
      scores: [],
      samples: [sample],
      metrics: {},
      turnCount: 1,
    },
    reward: 0,
    advantage: index === 0 ? 1 : -1,
  };
}

const CREDIT: Credit = {
  groups: [{ task: 0, rollouts: [credited(0, 2), credited(1, 3)] }],
  leftOut: [],
  emptyGroupCount: 0,
  metrics: {},
};

/** Corrects the plan of the two rollouts with an engine that finds these log-probabilities. */
async function correct(
  correction: unknown,
  found: readonly (readonly number[])[] = [
    [-1, -1 + Math.log(4)],
    [-1, -1, -1 - Math.log(4)],
  ],
  aggregate = "token_mean",
) {
  let calls = 0;
  const engine: Pick<TrainingEngine, "logprobs"> = {
    logprobs: async () => {
      calls++;
      return {
        logprobs: found.map((each) => Float32Array.from(each)),
        entropies: [],
        squares: [],
        sampleTokenCount: 0,
        packedTokenCount: 0,
        elapsedMs: 0,
      };
    },
  };
  const config = testConfig({
    algorithm: {
      loss: { kind: "ppo_clip", aggregate },
      ...(correction === undefined ? {} : { correction }),
    },
    trainer: { steps: 1, minibatches: 1, optimizer: { kind: "adamw", learningRate: 0.1 } },
  });
  const metrics = new MetricSet();
  const plan = planTraining(CREDIT, config);
  const corrected = await correctPlan(engine, config, plan, metrics, () => undefined);
  const samples = corrected[0]!.samples;
  return {
    calls,
    plan,
    corrected,
    figures: metrics.toRecord(),
    old: samples.map(({ oldLogprobs }) => Array.from(oldLogprobs)),
    weights: samples.map(({ weights }) => Array.from(weights)),
  };
}

function assertWeights(found: readonly number[][], expected: readonly number[][]): void {
  assert.deepEqual(
    found.map(({ length }) => length),
    expected.map(({ length }) => length),
  );
  for (const [i, row] of expected.entries()) {
    for (const [token, value] of row.entries()) assertClose(found[i]![token]!, value);
  }
}

describe("correctPlan()", () => {
  test("leaves the plan and the engine alone where the run names no correction", async () => {
    const { calls, plan, corrected } = await correct(undefined);
    assert.equal(calls, 0);
    assert.equal(corrected, plan);
  });

  test("takes the recomputed log-probabilities as the old policy, and truncates the weights of tokens", async () => {
    const { calls, old, weights, figures } = await correct({ weight: {} });
    assert.equal(calls, 1);
    assertClose(old[0]![1]!, -1 + Math.log(4));
    assertWeights(weights, [
      [1 / 5, 2 / 5],
      [1 / 5, 1 / 5, 1 / 20],
    ]);
    assertClose(figures["correction/weight/mean"]!, (1 + 2 + 1 + 1 + 0.25) / 5);
  });

  test("a rejected token has no weight and does not count in those of the others", async () => {
    const { weights } = await correct({ reject: [{ measure: "ratio", upper: 2 }] });
    assertWeights(weights, [
      [1 / 4, 0],
      [1 / 4, 1 / 4, 1 / 4],
    ]);
  });

  test("a weight of 0 outside of IcePop's window still counts", async () => {
    const { weights } = await correct({ weight: { lower: 0.5, upper: 2, outside: "zero" } });
    assertWeights(weights, [
      [1 / 5, 0],
      [1 / 5, 1 / 5, 0],
    ]);
  });

  test("a rollout of which every token is rejected counts as none where rollouts weigh the same", async () => {
    const { weights } = await correct(
      { veto: 0.5 },
      [
        [-1, -1],
        [-1, -1, -3],
      ],
      "seq_mean_token_mean",
    );
    assertWeights(weights, [
      [1 / 2, 1 / 2],
      [0, 0, 0],
    ]);
  });

  test("keeps the policy that sampled as the old one where the run file says so", async () => {
    const { old, weights } = await correct({ old: "rollout", reject: [{ measure: "ratio", upper: 2 }] });
    assert.deepEqual(old, [
      [-1, -1],
      [-1, -1, -1],
    ]);
    assertClose(weights[0]![0]!, 1 / 4);
  });

  test("refuses weights where the old policy is the one that sampled, as its ratios are the weights", () => {
    assert.throws(() => testConfig({ algorithm: { correction: { old: "rollout", weight: {} } } }), /weight/);
  });
});
