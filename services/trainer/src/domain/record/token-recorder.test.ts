/** The record of a step's tokens: what it keeps, what it says of them, and that its sums count all. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  assignCredit,
  type CreditedRollout,
  groupsOfRole,
  policyObjective,
  type Rollout,
  type Sample,
} from "@hone/rl";
import { testConfig } from "../../testing/fake-run.ts";
import type { MinibatchResult } from "../step/training-engine.ts";
import { type PlannedSample, planTraining } from "../step/training-plan.ts";
import { chooseRollouts } from "./choose-rollouts.ts";
import { type RecordedUpdate, TokenRecorder } from "./token-recorder.ts";

const TOKENS = 3;

function sample(first: number): Sample {
  return {
    tokenIds: [first, 10, 11, 12],
    lossMask: Uint8Array.of(0, 1, 1, 1),
    logprobs: [-1, -2, -0.5],
    versions: [{ version: 0, tokenCount: TOKENS }],
  };
}

/** Two samples each. */
function rollout(task: number, index: number, reward: number): Rollout {
  return {
    slot: { split: "train", step: 1, task, index },
    attempt: 1,
    outcome: "completed",
    scores: [{ judge: "environment", weight: 1, value: reward }],
    samples: [sample(task), sample(task + 1)],
    metrics: {},
    turnCount: 1,
  };
}

function configOf(tokensPerStep: number, algorithm: Record<string, unknown> = {}) {
  return testConfig({
    algorithm,
    trainer: { steps: 3, optimizer: { kind: "adamw", learningRate: 0.1 }, tokenRecord: { tokensPerStep } },
  } as never);
}

function planned(config = configOf(8_192), groupCount = 2) {
  const groups = Array.from({ length: groupCount }, (_, task) => ({
    task,
    rollouts: [rollout(task, 0, 1), rollout(task, 1, 0)],
  }));
  return planTraining(assignCredit(groups, config.algorithm), config);
}

/** An update in which every token has the same log-probability. */
function update(
  config: ReturnType<typeof configOf>,
  samples: readonly PlannedSample[],
  logprob: number,
): RecordedUpdate {
  const { loss, kl } = config.algorithm;
  const numbers = samples.map(() => new Float32Array(TOKENS).fill(logprob));
  const result: MinibatchResult = {
    logprobs: numbers,
    entropies: numbers,
    squares: numbers,
    supervisedLogprobs: [],
    loss: 0.5,
    gradNorm: 2,
    sampleTokenCount: 0,
    packedTokenCount: 0,
    elapsedMs: 0,
  };
  return {
    epoch: 0,
    minibatch: 0,
    samples,
    result,
    objective: policyObjective(loss, kl),
    selected: undefined,
    reference: undefined,
  };
}

function recorded(
  config: ReturnType<typeof configOf>,
  change = (samples: readonly PlannedSample[]) => samples,
) {
  const plan = planned(config);
  const recorder = new TokenRecorder(config);
  recorder.begin(plan);
  for (const { samples } of plan) recorder.add(update(config, change(samples), -1));
  return recorder.finish();
}

describe("the record of a step's tokens", () => {
  test("says of each token what the loss made of it", () => {
    const { gradient, rollouts } = recorded(configOf(8_192));
    assert.equal(rollouts.length, 4);
    const [first] = rollouts;
    assert.deepEqual(first?.sampleTokens, [TOKENS, TOKENS]);
    assert.deepEqual([...first!.tokenIds], [10, 11, 12, 10, 11, 12]);
    assert.deepEqual([...first!.positions], [1, 2, 3, 1, 2, 3]);
    const [pass] = first!.passes;
    // Sampled at -1, -2 and -0.5, trained at -1, with an advantage above 0.
    assert.deepEqual(pass?.cuts.slice(0, TOKENS), ["none", "clip_high", "none"]);
    assert.equal(pass?.coefficients[1], 0);
    const coefficient = pass!.coefficients[0]!;
    assert.ok(Math.abs(coefficient + Number(first!.advantages) * Number(first!.weights)) < 1e-7);
    assert.ok(Math.abs(pass!.pulls[0]! - coefficient * (1 - Math.exp(-1))) < 1e-7);
    assert.deepEqual([gradient.tokens, gradient.recordedTokens], [24, 24]);
    assert.deepEqual([gradient.updates[0]?.gradNorm, gradient.updates[0]?.scaledBy], [2, 1 / (2 + 1e-6)]);
  });

  test("sums and the largest shares count every token, also of rollouts that are not kept", () => {
    const [whole, part] = [recorded(configOf(8_192)), recorded(configOf(2 * TOKENS))];
    assert.deepEqual([part.rollouts.length, part.gradient.recordedTokens], [1, 2 * TOKENS]);
    const { recordedRollouts: _, recordedTokens: __, ...sums } = part.gradient;
    const { recordedRollouts: ___, recordedTokens: ____, ...all } = whole.gradient;
    assert.deepEqual(sums, all);
    const shares = sums.topRollouts.map(({ share }) => share);
    assert.ok(Math.abs(shares.reduce((sum, share) => sum + share, 0) - 1) < 1e-12);
    assert.deepEqual(
      shares,
      [...shares].sort((a, b) => b - a),
    );
    assert.equal(sums.topTokens.length, 10);
  });

  test("a token that the correction rejected is said to be", () => {
    const { rollouts, gradient } = recorded(configOf(8_192), (samples) =>
      samples.map((each) => ({
        ...each,
        corrections: Float32Array.of(0, 1, 1),
        weights: each.weights.map((weight, token) => (token === 0 ? 0 : weight)),
      })),
    );
    assert.equal(rollouts[0]?.passes[0]?.cuts[0], "rejected");
    assert.equal(rollouts[0]?.passes[0]?.coefficients[0], 0);
    assert.equal(gradient.cuts.rejected, 8);
  });

  test("of a rollout of which one sample was trained, that sample's tokens are kept", () => {
    const { rollouts } = recorded(configOf(8_192), (samples) =>
      samples.filter(({ credited, sample: each }) => credited.rollout.samples[1] === each),
    );
    assert.deepEqual(rollouts[0]?.sampleTokens, [0, TOKENS]);
    assert.equal(rollouts[0]?.tokenIds.length, TOKENS);
    assert.equal(rollouts[0]?.passes[0]?.pulls.length, TOKENS);
  });

  test("of a role's part, samples have the places of the whole rollout", () => {
    const config = configOf(8_192);
    const groups = Array.from({ length: 2 }, (_, task) => ({
      task,
      rollouts: [rollout(task, 0, 1), rollout(task, 1, 0)].map((whole) => ({
        ...whole,
        samples: [
          { ...sample(7), role: "black" },
          ...whole.samples.map((each) => ({ ...each, role: "white" })),
        ],
      })),
    }));
    const plan = planTraining(assignCredit(groupsOfRole(groups, "white"), config.algorithm), config);
    const recorder = new TokenRecorder(config, "rival");
    recorder.begin(plan);
    for (const { samples } of plan) recorder.add(update(config, samples, -1));
    const { policy, rollouts, gradient } = recorder.finish();
    assert.equal(policy, "rival");
    assert.deepEqual(
      rollouts.map(({ role, sampleTokens }) => [role, sampleTokens]),
      Array(4).fill(["white", [0, TOKENS, TOKENS]]),
    );
    assert.equal(gradient.topRollouts[0]?.role, "white");
    assert.deepEqual([...new Set(gradient.topTokens.map((token) => token.sample))].sort(), [1, 2]);
  });

  test("the tokens of a step are shared evenly among the policies that learn", () => {
    const roles = { white: {}, black: { policy: "rival" } };
    const config = configOf(4 * TOKENS);
    const recorder = new TokenRecorder({ ...config, roles, policies: { rival: {} } } as never);
    const plan = planned(config);
    recorder.begin(plan);
    for (const { samples } of plan) recorder.add(update(config, samples, -1));
    assert.equal(recorder.finish().gradient.recordedTokens, 2 * TOKENS);
  });
});

describe("chooseRollouts()", () => {
  const all = planned(configOf(8_192), 20).flatMap(({ rollouts }) => rollouts);
  const choose = (rollouts: readonly CreditedRollout[], limit: number, seed = 1) =>
    [...chooseRollouts(rollouts, { seed, limit, epochs: 2 })].map(
      ({ rollout: { slot } }) => `${slot.task}.${slot.index}`,
    );

  test("takes all where they fit, and else whole rollouts up to the limit", () => {
    assert.equal(choose(all, 2 * 40 * 6).length, 40);
    assert.equal(choose(all, 2 * 40 * 6 - 1).length, 39);
    assert.equal(choose(all, 25).length, 2);
    assert.equal(choose(all, 11).length, 0);
  });

  test("does not depend on the order of the rollouts, and on the seed it does", () => {
    const chosen = choose(all, 120).sort();
    assert.deepEqual(choose([...all].reverse(), 120).sort(), chosen);
    assert.notDeepEqual(choose(all, 120, 2).sort(), chosen);
  });
});
