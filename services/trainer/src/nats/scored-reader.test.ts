import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  EpisodeSchema,
  Outcome,
  SampleSchema,
  ScoredEpisodeSchema,
  ScoreSchema,
  SlotSchema,
  VersionSpanSchema,
} from "@hone/proto-gen/rollout";
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
    scores: [create(ScoreSchema, { judge: "environment", weight: 2, value: 0.5 })],
  });
}

describe("decodeRollout()", () => {
  test("reads an episode in the domain's words", () => {
    const rollout = decodeRollout(
      message("train", { logprobs: [-1, -2], versions: [{ version: 4, tokenCount: 2 }] }),
    );
    assert.deepEqual(rollout.slot, { split: "train", step: 1, task: 2, index: 3 });
    assert.deepEqual([rollout.attempt, rollout.outcome, rollout.metrics], [2, "completed", { success: 1 }]);
    assert.deepEqual(rollout.scores, [{ judge: "environment", weight: 2, value: 0.5 }]);
    assert.deepEqual(rollout.samples[0]?.tokenIds, Uint32Array.of(7, 8, 9));
  });

  test("copies the mask out of the message, whose whole buffer would go along to another thread", () => {
    const buffer = new Uint8Array(1_000);
    const scored = message("train", { logprobs: [-1, -2], versions: [{ version: 4, tokenCount: 2 }] });
    scored.episode!.samples[0]!.lossMask = buffer.subarray(10, 13).fill(0);
    scored.episode!.samples[0]!.logprobs = [];
    scored.episode!.samples[0]!.versions = [];
    assert.equal(decodeRollout(scored).samples[0]?.lossMask.buffer.byteLength, 3);
  });

  test("takes a scripted policy's tokens as certain", () => {
    const [sample] = decodeRollout(message("warm", { logprobs: [], versions: [] })).samples;
    assert.deepEqual(sample?.logprobs, new Float32Array(2));
    assert.deepEqual(sample?.versions, [{ version: 0, tokenCount: 2 }]);
  });

  test("refuses a sample of the model that has no logprobs", () => {
    assert.throws(
      () => decodeRollout(message("train", { logprobs: [], versions: [] })),
      /one logprob per sampled token/,
    );
  });
});
