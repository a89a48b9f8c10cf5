import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { StreamingDecoder } from "./streaming-decoder.ts";
import { chatmlTokenizer } from "./testing.ts";

const tokenizer = chatmlTokenizer();

function piecesOf(ids: readonly number[]): string[] {
  const decoder = new StreamingDecoder(tokenizer);
  return [...ids.map((id) => decoder.push(id)), decoder.flush()];
}

describe("StreamingDecoder", () => {
  test("returns a character with the last of its tokens", () => {
    assert.deepEqual(piecesOf(tokenizer.encode("aé😀!")), ["a", "", "é", "", "", "", "😀", "!", ""]);
  });

  test("returns only whole characters, and in total the whole text", () => {
    const random = new Random(3);
    const parts = ["the ", "é", "√", "😀", "👩‍💻", "<|im_end|>", "\n", "in", "語"];
    for (let round = 0; round < 200; round++) {
      const text = Array.from({ length: 1 + random.nextInt(12) }, () => random.pick(parts)).join("");
      const pieces = piecesOf(tokenizer.encode(text));
      assert.equal(pieces.join(""), text);
      assert.ok(!pieces.join("|").includes("\uFFFD"), text);
    }
  });

  test("bytes that never become a character do not hold back the text after them", () => {
    const lead = tokenizer.encode("😀")[0]!;
    const pieces = piecesOf([lead, ...tokenizer.encode("ok"), lead]);
    assert.equal(pieces.join(""), tokenizer.decode([lead, ...tokenizer.encode("ok"), lead]));
    assert.ok(pieces.slice(0, 3).join("").endsWith("ok"));
  });
});
