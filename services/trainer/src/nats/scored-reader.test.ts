import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { TerminalError } from "@hone/core";
import {
  EpisodeSchema,
  Outcome,
  SampleSchema,
  ScoredEpisodeSchema,
  ScoreSchema,
  SlotSchema,
  TurnRewardSchema,
  TurnSchema,
  VersionSpanSchema,
} from "@hone/proto-gen/rollout";
import { algorithmSchema, assignCredit, checkSample, type Rollout } from "@hone/rl";
import { anyMessage, corrupted, fuzz } from "@hone/testing/fuzz";
import fc from "fast-check";
import { decodeRollout } from "./scored-reader.ts";

function message(
  split: string,
  sample: { logprobs: number[]; versions: Array<{ version: number; tokenCount: number }> },
) {
  return create(ScoredEpisodeSchema, {
    episode: create(EpisodeSchema, {
      runId: "run-1",
      slot: create(SlotSchema, { split, step: 1, task: 2, index: 3 }),
      attempt: 2,
      outcome: Outcome.COMPLETED,
      samples: [
        create(SampleSchema, {
          tokenIds: [7, 8, 9],
          lossMask: Uint8Array.of(0, 1, 1),
          logprobs: sample.logprobs,
          versions: sample.versions.map((span) => create(VersionSpanSchema, span)),
        }),
      ],
      metrics: { success: 1 },
    }),
    scores: [
      create(ScoreSchema, {
        judge: "environment",
        weight: 2,
        value: 0.5,
        metrics: { acc: 1, none: Number.NaN },
      }),
    ],
  });
}

describe("decodeRollout()", () => {
  test("reads rewards of turns with the tokens that they are for, and refuses those of no turn", () => {
    const rewarded = (turn: number, sampledEnd: number) => {
      const scored = message("train", { logprobs: [-1, -2], versions: [{ version: 4, tokenCount: 2 }] });
      scored.episode!.turns.push(create(TurnSchema, { sampledBegin: 1, sampledEnd }));
      scored.scores[0]!.turnRewards.push(create(TurnRewardSchema, { turn, value: 0.25 }));
      return decodeRollout(scored, "run-1");
    };
    const rollout = rewarded(0, 3);
    assert.deepEqual(rollout.scores[0]?.turnRewards, [{ turn: 0, value: 0.25 }]);
    assert.deepEqual(rollout.turns, [{ sample: 0, begin: 1, end: 3 }]);
    assert.throws(() => rewarded(1, 3), /rewarded turn 1 of an episode of 1 turns/);
    assert.throws(
      () => rewarded(0, 4),
      /tokens of turn 0 at 1 to 4 of sample 0; they must lie within its sample \(3 tokens\)/,
    );
  });

  test("reads the state in which a turn acted, and takes other texts as none", () => {
    const stateOf = (infoJson: string) => {
      const scored = message("train", { logprobs: [-1, -2], versions: [{ version: 4, tokenCount: 2 }] });
      scored.episode!.turns.push(create(TurnSchema, { sampledBegin: 1, sampledEnd: 3, infoJson }));
      return decodeRollout(scored, "run-1").turns?.[0]?.state;
    };
    assert.equal(stateOf('{"action":"Left","state":"hall"}'), "hall");
    for (const other of ["{}", '{"state":7}', '{"state":', '"state"', 'null "state"']) {
      assert.equal(stateOf(other), undefined);
    }
  });

  test("reads an episode in the domain's words", () => {
    const rollout = decodeRollout(
      message("train", { logprobs: [-1, -2], versions: [{ version: 4, tokenCount: 2 }] }),
      "run-1",
    );
    assert.deepEqual(rollout.slot, { split: "train", step: 1, task: 2, index: 3 });
    assert.deepEqual([rollout.attempt, rollout.outcome, rollout.metrics], [2, "completed", { success: 1 }]);
    assert.deepEqual(rollout.scores, [{ judge: "environment", weight: 2, value: 0.5, metrics: { acc: 1 } }]);
    assert.deepEqual(rollout.samples[0]?.tokenIds, Uint32Array.of(7, 8, 9));
  });

  test("copies the mask out of the message, whose whole buffer would go along to another thread", () => {
    const buffer = new Uint8Array(1_000);
    const scored = message("train", { logprobs: [-1, -2], versions: [{ version: 4, tokenCount: 2 }] });
    scored.episode!.samples[0]!.lossMask = buffer.subarray(10, 13).fill(0);
    scored.episode!.samples[0]!.logprobs = [];
    scored.episode!.samples[0]!.versions = [];
    assert.equal(decodeRollout(scored, "run-1").samples[0]?.lossMask.buffer.byteLength, 3);
  });

  test("takes a scripted policy's tokens as certain", () => {
    const [sample] = decodeRollout(message("warm", { logprobs: [], versions: [] }), "run-1").samples;
    assert.deepEqual(sample?.logprobs, new Float32Array(2));
    assert.deepEqual(sample?.versions, [{ version: 0, tokenCount: 2 }]);
  });

  test("refuses a sample of the model that has no logprobs", () => {
    assert.throws(
      () => decodeRollout(message("train", { logprobs: [], versions: [] }), "run-1"),
      /2 sampled tokens and 0 logprobs/,
    );
  });

  test("refuses an episode of another run, a reward that is no number and an attempt that no row takes", () => {
    const good = () => message("train", { logprobs: [-1, -2], versions: [{ version: 4, tokenCount: 2 }] });
    assert.throws(() => decodeRollout(good(), "run-2"), /of run "run-1" came for run run-2/);
    const worthless = good();
    worthless.scores[0]!.value = Number.NaN;
    assert.throws(
      () => decodeRollout(worthless, "run-1"),
      /the reward of a scored episode is NaN, which is not a finite number/,
    );
    const late = good();
    late.episode!.attempt = 2 ** 31;
    assert.throws(() => decodeRollout(late, "run-1"), /attempts have numbers from 1 to 2147483647/);
    const silent = good();
    silent.episode!.metrics = { success: Number.NaN, "a\0": 1, turns: 2 };
    assert.deepEqual(decodeRollout(silent, "run-1").metrics, { turns: 2 });
  });

  test("whatever comes, what is taken can be credited and kept, and the rest is refused", () => {
    const good = message("train", { logprobs: [-1, -2], versions: [{ version: 4, tokenCount: 2 }] });
    const kinds = [
      "grpo",
      "gdpo",
      "opo",
      "reinforce_plus_plus",
      "agentic_reinforce",
      "step_reinforce",
      "gigpo",
    ];
    const algorithms = kinds.map((kind) => algorithmSchema.parse({ advantage: { kind } }));
    const outcomes = { truncated: "keep", agentFailed: "drop", timedOut: "drop" } as const;
    let taken = 0;
    const any = fc.oneof(corrupted(ScoredEpisodeSchema, good), anyMessage(ScoredEpisodeSchema));
    fc.assert(
      fc.property(any, fc.constantFrom(...algorithms), (scored, algorithm) => {
        let rollout: Rollout;
        try {
          rollout = decodeRollout(scored, "run-1");
        } catch (error) {
          assert.ok(error instanceof TerminalError, String(error));
          return;
        }
        taken++;
        for (const sample of rollout.samples) checkSample(sample, "a sample that was taken");
        const credit = assignCredit([{ task: 0, rollouts: [rollout, { ...rollout }] }], {
          ...algorithm,
          outcomes,
        });
        for (const { reward, advantage } of credit.groups.flatMap((group) => group.rollouts)) {
          assert.ok(Number.isFinite(reward) && Number.isFinite(advantage));
        }
        assert.ok(!/null|\\u0000/.test(JSON.stringify(rollout.metrics)));
      }),
      fuzz(1_000),
    );
    assert.ok(taken > 50, `${taken}`);
  });
});
