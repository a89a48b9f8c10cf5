import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Credit, type CreditedRollout, MetricSet } from "@hone/rl";
import { assertClose } from "@hone/testing";
import { testConfig } from "../../testing/fake-run.ts";
import { optimise } from "./optimise.ts";
import type { Minibatch, TrainingEngine } from "./training-engine.ts";
import { planTraining } from "./training-plan.ts";
import { imitationSamples } from "./training-sample.ts";

/** One rollout whose two tokens were sampled at log-probabilities -1 and -2. */
function credited(task: number, index: number, advantage: number): CreditedRollout {
  const slot = { split: "train", step: 1, task, index } as const;
  const sample = {
    tokenIds: Uint32Array.of(1, 2, 3),
    lossMask: Uint8Array.of(0, 1, 1),
    logprobs: [-1, -2],
    versions: [{ version: 0, tokenCount: 2 }],
  };
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
    advantage,
  };
}

const CREDIT: Credit = {
  groups: [
    { task: 0, rollouts: [credited(0, 0, 1), credited(0, 1, -1)] },
    { task: 1, rollouts: [credited(1, 0, 0), credited(1, 1, 0)] },
  ],
  leftOut: [],
  emptyGroupCount: 0,
  metrics: {},
};

const CONFIG = testConfig({
  trainer: { steps: 3, epochs: 2, minibatches: 2, optimizer: { kind: "adamw", learningRate: 0.1 } },
});

/** An engine that answers each call with the next of the given log-probabilities, the same for every sample. */
function engineAnswering(answers: ReadonlyArray<readonly [number, number]>) {
  const calls: Minibatch[] = [];
  const refuse = () => Promise.reject(new Error("not expected"));
  const scores = (samples: readonly unknown[]) => {
    const answer = answers[calls.length]!;
    return {
      logprobs: samples.map(() => Float32Array.from(answer)),
      entropies: samples.map(() => Float32Array.of(0.5, 1.5)),
      squares: samples.map(() => new Float32Array(2)),
      sampleTokenCount: 0,
      packedTokenCount: 0,
      elapsedMs: 0,
    };
  };
  const engine: TrainingEngine = {
    vocabSize: 4,
    arithmetic: "",
    stateBytes: 0,
    initialise: refuse,
    load: refuse,
    resetOptimizer: refuse,
    logprobs: async (samples) => scores(samples),
    loadReference: refuse,
    referenceLogprobs: refuse,
    save: refuse,
    saveWeights: refuse,
    exportTo: refuse,
    close: refuse,
    async trainMinibatch(minibatch) {
      const scored = scores(minibatch.samples);
      calls.push(minibatch);
      return {
        ...scored,
        loss: calls.length,
        gradNorm: 2 * calls.length,
        supervisedLogprobs:
          minibatch.supervised?.map(({ weights }) => new Float32Array(weights.length).fill(-2)) ?? [],
      };
    },
  };
  return { engine, calls };
}

describe("optimise()", () => {
  test("measures the mismatch before the first update only, and the other figures over all updates", async () => {
    const { engine, calls } = engineAnswering([
      [-1.25, -2],
      [-1 + Math.log(2), -2 + Math.log(0.5)],
    ]);
    const metrics = new MetricSet();
    const plan = planTraining(CREDIT, CONFIG);
    const { updateCount, figures } = await optimise(
      { engine, config: CONFIG },
      1,
      plan,
      metrics,
      () => undefined,
    );
    // The second minibatch has no advantage and is skipped: one update an epoch.
    assert.equal(updateCount, 2);
    assert.deepEqual(
      calls.map(({ samples }) => samples.map(({ weights }) => Array.from(weights))),
      Array.from({ length: 2 }, () => [
        [0.25, 0.25],
        [0.25, 0.25],
      ]),
    );
    const record = metrics.toRecord();
    assertClose(record["mismatch/max"]!, 0.25);
    assertClose(record["mismatch/mean"]!, 0.125);
    assert.equal(record.loss, 1.5);
    assert.equal(record.grad_norm, 3);
    assert.equal(record["grad_norm/max"], 4);
    assert.equal(record.entropy, 1);
    assertClose(record["ratio/max"]!, 2);
    // For the negative advantage 0.78 is clipped in the first epoch and 0.5 in the last, for the positive one 2 in the
    // last: 3 of 8 tokens.
    assert.equal(record.clip_fraction, 0.375);
    const [first] = [...figures.values()];
    assertClose(first!.ratioSum, 2.5);
    assert.deepEqual([first!.tokens, first!.clipped], [2, 1]);
  });

  test("adds a KL term against a reference that is scored once, also where no rollout has an advantage", async () => {
    const { engine, calls } = engineAnswering(Array.from({ length: 4 }, () => [-1, -2] as const));
    const scored: number[] = [];
    const near: TrainingEngine = {
      ...engine,
      referenceLogprobs: async (samples) => {
        scored.push(samples.length);
        return { ...(await engine.logprobs(samples)), logprobs: samples.map(() => Float32Array.of(-1, -3)) };
      },
    };
    const config = testConfig({
      trainer: CONFIG.trainer,
      algorithm: { kl: { coefficient: 0.5, kind: "k2" } },
    });
    const metrics = new MetricSet();
    const plan = planTraining(CREDIT, config);
    const { updateCount } = await optimise({ engine: near, config }, 1, plan, metrics, () => undefined);
    assert.equal(updateCount, 4);
    assert.deepEqual(scored, [2, 2]);
    for (const { terms, samples } of calls) {
      assert.deepEqual(terms[1], { name: "kl_k2", constants: { coefficient: 0.5 } });
      for (const { inputs } of samples) {
        assert.deepEqual(Array.from(inputs?.referenceLogprob ?? []), [-1, -3]);
      }
    }
    // 0 for the first token, 1 / 2 for the second.
    assertClose(metrics.toRecord()["kl/mean"]!, 0.25);
  });

  test("has a minibatch scored before each update where the loss chooses tokens from all of it", async () => {
    const { engine, calls } = engineAnswering([
      [-1, -2],
      [-3, -1],
    ]);
    let scoredCount = 0;
    const scoring: TrainingEngine = {
      ...engine,
      logprobs: (samples) => {
        scoredCount++;
        return engine.logprobs(samples);
      },
    };
    const config = testConfig({
      trainer: { ...CONFIG.trainer, minibatches: 1 },
      algorithm: { loss: { kind: "kl_cov", share: 0.2 } },
    });
    const metrics = new MetricSet();
    const plan = planTraining(CREDIT, config);
    await optimise({ engine: scoring, config }, 1, plan, metrics, () => undefined);
    assert.equal(scoredCount, 2);
    // Rollouts without an advantage count among the eight tokens. The highest covariance is that of the first rollout's
    // likelier token.
    const chosen = calls.map(({ samples }) =>
      samples.map(({ inputs }) => [...Array.from(inputs!.selected!)]),
    );
    const rest = [
      [0, 0],
      [0, 0],
      [0, 0],
    ];
    assert.deepEqual(chosen, [
      [[1, 0], ...rest],
      [[0, 1], ...rest],
    ]);
    assert.equal(metrics.toRecord().clip_fraction, 1 / 8);
  });

  test("compares the ratio of a sample where the loss takes its tokens together", async () => {
    const { engine, calls } = engineAnswering([[-1 + Math.log(2), -2 - Math.log(1.9)]]);
    const config = testConfig({
      trainer: { ...CONFIG.trainer, epochs: 1 },
      algorithm: { loss: { kind: "gspo", clipLow: 0.2, clipHigh: 0.2 } },
    });
    const metrics = new MetricSet();
    await optimise({ engine, config }, 1, planTraining(CREDIT, config), metrics, () => undefined);
    assert.equal(calls.length, 1);
    assert.equal(calls[0]!.samples[0]!.inputs!.reward, undefined);
    // Each token alone is beyond its bound; their geometric mean is near 1.
    assert.equal(metrics.toRecord().clip_fraction, 0);
  });

  test("imitates in each update, also in those whose rollouts have no advantage", async () => {
    const { engine, calls } = engineAnswering(Array.from({ length: 4 }, () => [-1, -2] as const));
    const metrics = new MetricSet();
    const plan = planTraining(CREDIT, CONFIG);
    const supervised = [1, 2, 3, 4].map((token) =>
      imitationSamples([{ tokenIds: [token, token], lossMask: [0, 1] }], 0.5),
    );
    const context = { engine, config: CONFIG, supervised };
    const { updateCount } = await optimise(context, 1, plan, metrics, () => undefined);
    assert.equal(updateCount, 4);
    assert.deepEqual(
      calls.map(({ samples, terms, supervised: beside = [] }) => ({
        trained: samples.length,
        term: terms[0]!.name,
        tokens: beside.map(({ tokenIds }) => tokenIds[0]),
      })),
      [
        { trained: 2, term: "ppo_clip", tokens: [1] },
        { trained: 1, term: "cross_entropy", tokens: [] },
        { trained: 2, term: "ppo_clip", tokens: [3] },
        { trained: 1, term: "cross_entropy", tokens: [] },
      ],
    );
    assert.deepEqual([calls[1]!.samples, calls[1]!.entropyCoefficient], [supervised[1], 0]);
    assert.deepEqual(calls[0]!.supervised?.[0]?.weights, Float32Array.of(0.5));
  });

  test("updates nothing where no rollout has an advantage, and still measures the mismatch", async () => {
    const { engine, calls } = engineAnswering([[-1, -2.5]]);
    const flat: Credit = { ...CREDIT, groups: [CREDIT.groups[1]!] };
    const metrics = new MetricSet();
    const { updateCount } = await optimise(
      { engine, config: CONFIG },
      1,
      planTraining(flat, CONFIG),
      metrics,
      () => undefined,
    );
    assert.equal(updateCount, 0);
    assert.equal(calls.length, 0);
    assert.deepEqual(metrics.toRecord(), { "mismatch/max": 0.5, "mismatch/mean": 0.25 });
  });
});
