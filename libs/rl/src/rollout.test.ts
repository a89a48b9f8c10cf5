import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkSample, versionRange } from "./rollout.ts";
import { rolloutOf, sampleOf } from "./testing.ts";

describe("checkSample()", () => {
  const sample = sampleOf(2);

  test("accepts a consistent sample", () => {
    checkSample(sample, "train.1.0.0");
  });

  test("names the part that does not fit", () => {
    const broken: Array<[Partial<typeof sample>, RegExp]> = [
      [{ lossMask: Uint8Array.of(0, 1) }, /has 3 tokens and a mask of 2 entries/],
      [{ lossMask: Uint8Array.of(1, 1, 0) }, /first token/],
      [{ lossMask: Uint8Array.of(0, 1, 2) }, /holds 2; only 0 and 1/],
      [{ logprobs: [-1] }, /has 2 sampled tokens and 1 logprobs/],
      [{ logprobs: [-1, Number.NaN] }, /sampled token 1 of train.1.0.0 is NaN; it must be finite/],
      [{ versions: [{ version: 0, tokenCount: 1 }] }, /cover 1 tokens; they must cover its 2 sampled tokens/],
    ];
    for (const [changes, message] of broken) {
      assert.throws(() => checkSample({ ...sample, ...changes }, "train.1.0.0"), message);
    }
  });
});

describe("versionRange()", () => {
  test("spans all samples and ignores empty spans", () => {
    const rollout = rolloutOf(0, 0, 1, {
      samples: [
        {
          ...sampleOf(2),
          versions: [
            { version: 3, tokenCount: 1 },
            { version: 4, tokenCount: 1 },
          ],
        },
        {
          ...sampleOf(1),
          versions: [
            { version: 9, tokenCount: 0 },
            { version: 5, tokenCount: 1 },
          ],
        },
      ],
    });
    assert.deepEqual(versionRange(rollout), { lowest: 3, highest: 5 });
  });

  test("is undefined without a sampled token", () => {
    assert.equal(versionRange(rolloutOf(0, 0, 1, { samples: [] })), undefined);
  });
});
