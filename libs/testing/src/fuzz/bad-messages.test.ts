import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, equals, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Episode, EpisodeSchema } from "@hone/proto-gen/rollout";
import fc from "fast-check";
import { anyMessage, badBodies, corrupted } from "./bad-messages.ts";
import { fuzz, withInputs } from "./settings.ts";

const valid: Episode = create(EpisodeSchema, {
  runId: "run-1",
  slot: { split: "train", step: 3, task: 1, index: 0 },
  samples: [{ tokenIds: [1, 2], lossMask: new Uint8Array([0, 1]), logprobs: [-0.5] }],
  metrics: { success: 1 },
});

describe("bad messages", () => {
  test("anyMessage() makes messages that can be encoded, with nested fields", () => {
    let nested = 0;
    fc.assert(
      fc.property(anyMessage(EpisodeSchema), (message) => {
        toBinary(EpisodeSchema, message);
        if (message.samples.some(({ logprobs }) => logprobs.length > 0)) nested++;
      }),
      fuzz(200),
    );
    assert.ok(nested > 0);
  });

  test("corrupted() changes few fields of a copy of the valid message", () => {
    const before = toBinary(EpisodeSchema, valid);
    let changed = 0;
    fc.assert(
      fc.property(corrupted(EpisodeSchema, valid), (message) => {
        if (!equals(EpisodeSchema, message, valid)) changed++;
      }),
      fuzz(200),
    );
    assert.ok(changed > 100);
    assert.deepEqual(toBinary(EpisodeSchema, valid), before);
  });

  test("badBodies() makes bodies that can be decoded and bodies that cannot", () => {
    let broken = 0;
    const bodies = fc.sample(badBodies(EpisodeSchema, valid), { numRuns: 300, seed: 1 });
    for (const body of bodies) {
      try {
        fromBinary(EpisodeSchema, body);
      } catch {
        broken++;
      }
    }
    assert.ok(broken > 20 && broken < 280, `${broken}`);
  });

  test("withInputs() adds the seed to a failure", async () => {
    await assert.rejects(
      withInputs(fc.integer(), 3, async () => assert.fail("wrong")),
      /^Error: wrong \(repeat it with HONE_FUZZ_SEED=\d+\)$/,
    );
  });
});
