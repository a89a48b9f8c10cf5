import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { EpisodeSchema, Outcome, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { rolloutRecordOf } from "./rollout-record.ts";
import { rolloutViewOf } from "./rollout-view.ts";

const episode = create(EpisodeSchema, {
  runId: "lake-1",
  slot: { split: "train", step: 2, task: 0, index: 1 },
  attempt: 1,
  outcome: Outcome.COMPLETED,
  metrics: { success: 1 },
  task: {
    id: "frozen_lake:7",
    environment: "frozen_lake",
    environmentSeed: 7n,
    environmentConfigJson: '{"size":4}',
  },
  samples: [
    {
      tokenIds: [10, 11, 20, 21, 12, 22, 13],
      lossMask: new Uint8Array([0, 0, 1, 1, 0, 1, 0]),
      logprobs: [-0.5, -1.5, -2.5],
      versions: [
        { version: 3, tokenCount: 2 },
        { version: 4, tokenCount: 1 },
      ],
    },
    {
      tokenIds: [10, 30],
      lossMask: new Uint8Array([0, 1]),
      logprobs: [-0.25],
      versions: [{ version: 4, tokenCount: 1 }],
    },
  ],
  turns: [
    {
      index: 0,
      sample: 0,
      sampledBegin: 2,
      sampledEnd: 4,
      finishReason: "stop",
      infoJson: '{"isValid":true}',
      responseText: "ab",
    },
    {
      index: 1,
      sample: 0,
      sampledBegin: 5,
      sampledEnd: 6,
      finishReason: "length",
      reward: 1,
      infoJson: "not json",
    },
    { index: 2, sample: 1, sampledBegin: 1, sampledEnd: 2, finishReason: "aborted" },
  ],
});
const scored = create(ScoredEpisodeSchema, {
  episode,
  reward: 1,
  scores: [
    { judge: "environment", weight: 1, value: 1, turnRewards: [{ turn: 1, value: 1 }] },
    { judge: "steps", weight: 1, value: 0, turnRewards: [{ turn: 1, value: -0.5 }] },
  ],
});

describe("rolloutViewOf()", () => {
  const view = rolloutViewOf(scored, episode, {
    textOf: (id) => (id === 30 ? undefined : `<${id}>`),
    chatTemplate: undefined,
  });

  test("gives each turn the context since the previous turn and the tokens that it sampled", () => {
    assert.deepEqual(
      view.turns.map((turn) => turn.tokens.map((token) => token.id)),
      [
        [10, 11, 20, 21],
        [12, 22],
        [10, 30],
      ],
    );
    assert.deepEqual(
      view.tails.map(({ sample, tokens }) => [sample, tokens.map((token) => token.id)]),
      [[0, [13]]],
    );
    assert.deepEqual([view.numSamples, view.turns.map((turn) => turn.sample)], [2, [0, 0, 1]]);
  });

  test("gives each turn the rewards of the judges for it", () => {
    assert.deepEqual(
      view.turns.map(({ judged }) => judged),
      [
        [],
        [
          { judge: "environment", value: 1 },
          { judge: "steps", value: -0.5 },
        ],
        [],
      ],
    );
  });

  test("gives a logprob and a version to sampled tokens only", () => {
    assert.deepEqual(view.turns[0]!.tokens[1], { id: 11, text: "<11>", isSampled: false });
    assert.deepEqual(view.turns[0]!.tokens[3], {
      id: 21,
      text: "<21>",
      isSampled: true,
      logprob: -1.5,
      version: 3,
    });
    assert.deepEqual(view.turns[1]!.tokens[1], {
      id: 22,
      text: "<22>",
      isSampled: true,
      logprob: -2.5,
      version: 4,
    });
    assert.deepEqual(view.turns[2]!.tokens[1], { id: 30, isSampled: true, logprob: -0.25, version: 4 });
  });

  test("gives each sampled token the advantage of its turn, or else that of the rollout", () => {
    const advantagesOf = (figures: Record<string, number>) =>
      rolloutViewOf(
        scored,
        episode,
        { textOf: () => undefined, chatTemplate: undefined },
        { advantage: -1.5, figures },
      ).turns.map(({ tokens }) => tokens.map(({ advantage }) => advantage));
    const own = { "hone.turn.advantages.0": 0.5, "hone.turn.advantages.1": -2 };
    assert.deepEqual(advantagesOf({}), [
      [undefined, undefined, -1.5, -1.5],
      [undefined, -1.5],
      [undefined, -1.5],
    ]);
    assert.deepEqual(advantagesOf(own), [
      [undefined, undefined, 0.5, 0.5],
      [undefined, -2],
      [undefined, -1.5],
    ]);
    assert.equal(view.turns[0]!.tokens[2]!.advantage, undefined);
  });

  test("shows a turn's info as JSON, or as text where it is not JSON", () => {
    assert.deepEqual(view.turns[0]!.info, { isValid: true });
    assert.equal(view.turns[1]!.info, "not json");
    assert.equal(view.turns[2]!.info, null);
    assert.equal(view.turns[0]!.reward, null);
    assert.equal(view.turns[1]!.reward, 1);
  });
});

describe("rolloutRecordOf()", () => {
  const slot = { split: "train", step: 2, task: 0, index: 1 } as const;

  test("counts sampled and all tokens over the samples", () => {
    const record = rolloutRecordOf(scored, episode, { slot, outcome: "completed" });
    assert.equal(record.sampledTokens, 4);
    assert.equal(record.totalTokens, 9);
    assert.equal(record.reward, 1);
    assert.equal(record.success, 1);
    assert.equal(record.taskId, "frozen_lake:7");
  });

  test("has no reward for a rollout that is excluded from training", () => {
    assert.equal(rolloutRecordOf(scored, episode, { slot, outcome: "infra_failed" }).reward, null);
  });
});
