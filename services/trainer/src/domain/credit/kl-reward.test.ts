import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome } from "@hone/core";
import { algorithmSchema, MetricSet, type Rollout } from "@hone/rl";
import type { TrainingSample } from "@hone/train";
import { testConfig } from "../../testing/fake-run.ts";
import { type KlRewardContext, klRewardsOf } from "./kl-reward.ts";

/** A rollout of one sample for each list of log-probabilities. */
function rolloutOf(index: number, outcome: Outcome, ...logprobs: number[][]): Rollout {
  return {
    slot: { split: "train", step: 1, task: 0, index },
    attempt: 1,
    outcome,
    scores: [],
    samples: logprobs.map((ofSample) => ({
      tokenIds: Uint32Array.from({ length: ofSample.length + 1 }, (_, i) => i),
      lossMask: Uint8Array.from({ length: ofSample.length + 1 }, (_, i) => Number(i > 0)),
      logprobs: Float32Array.from(ofSample),
      versions: [{ version: 0, tokenCount: ofSample.length }],
    })),
    metrics: {},
    turnCount: logprobs.length,
  };
}

describe("klRewardsOf()", () => {
  const rollouts = [
    rolloutOf(0, Outcome.completed, [-1, -2], [-3]),
    rolloutOf(1, Outcome.infraFailed, [-1]),
    rolloutOf(2, Outcome.truncated, [-0.5]),
  ];
  const find = async (reward: object, { step = 1, before = {} as Record<string, number> } = {}) => {
    const asked: number[] = [];
    const read: number[] = [];
    const context = {
      run: { runId: "run-1", config: { ...testConfig(), algorithm: algorithmSchema.parse({ reward }) } },
      engine: {
        referenceLogprobs: async (samples: readonly TrainingSample[]) => {
          asked.push(samples.length);
          return { logprobs: samples.map(({ weights }) => new Float32Array(weights.length).fill(-2)) };
        },
      },
      ledger: {
        step: async (_: string, version: number) => {
          read.push(version);
          return { metrics: before };
        },
      },
      reporter: { untilAvailable: (_: unknown, action: () => Promise<unknown>) => action() },
    } as unknown as KlRewardContext;
    const metrics = new MetricSet();
    const rewards = await klRewardsOf(context, step, rollouts, metrics);
    return { rewards, asked, read, metrics: metrics.toRecord() };
  };

  test("asks nothing of the engine where a run has no KL in its rewards", async () => {
    assert.deepEqual(await find({}), { rewards: undefined, asked: [], read: [], metrics: {} });
  });

  test("takes off every sampled token what it moved away from the reference, in rollouts that may be trained", async () => {
    const { rewards, asked, metrics } = await find({ kl: { coefficient: 0.5 } });
    assert.deepEqual([...rewards!.keys()], [rollouts[0], rollouts[2]]);
    assert.deepEqual([...rewards!.get(rollouts[0]!)!], [-0.5, 0, 0.5]);
    assert.deepEqual([...rewards!.get(rollouts[2]!)!], [-0.75]);
    assert.deepEqual(asked, [3]);
    assert.deepEqual(metrics, {
      "reward/kl/mean": 0.75,
      "reward/kl/coefficient": 0.5,
      "reward/kl/next_coefficient": 0.5,
    });
  });

  test("goes on with the coefficient that the step before left, also after a restart", async () => {
    const kl = { coefficient: 0.5, adaptive: { target: 0.1, horizon: 10 } };
    const first = await find({ kl });
    assert.deepEqual(first.read, []);
    assert.equal(first.metrics["reward/kl/next_coefficient"], 0.5 * (1 + (0.2 * 2) / 10));
    const second = await find({ kl }, { step: 2, before: first.metrics });
    assert.deepEqual(second.read, [1]);
    assert.equal(second.metrics["reward/kl/coefficient"], first.metrics["reward/kl/next_coefficient"]);
    assert.equal(
      (await find({ kl: { coefficient: 0.5 } }, { step: 2 })).metrics["reward/kl/coefficient"],
      0.5,
    );
  });
});
