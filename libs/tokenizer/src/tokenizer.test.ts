import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { EncodingCache } from "./encoding-cache.ts";
import { beginningTokenizer, chatmlTokenizer } from "./testing.ts";

const tokenizer = chatmlTokenizer();

describe("Tokenizer", () => {
  test("decode() restores every text from encode()", () => {
    const random = new Random(1);
    const pieces = ["the ", "in ", " a", "\n", "é", "√", "😀", "<", "|", "0", "\t", "x y"];
    for (let round = 0; round < 200; round++) {
      const text = Array.from({ length: 1 + random.nextInt(12) }, () => random.pick(pieces)).join("");
      assert.equal(tokenizer.decode(tokenizer.encode(text)), text);
    }
  });

  test("encode() applies merges and turns written-out control tokens into their ids", () => {
    assert.deepEqual(tokenizer.encode("the<|im_end|>"), [
      tokenizer.tokenId("the"),
      tokenizer.tokenId("<|im_end|>"),
    ]);
  });

  test("encode() of an empty text is empty, and so is decode() of no ids", () => {
    assert.deepEqual(tokenizer.encode(""), []);
    assert.equal(tokenizer.decode([]), "");
  });

  test("encodeText() adds the post-processor's first token, encode() does not", () => {
    const beginning = beginningTokenizer();
    const begin = beginning.tokenId("<|endoftext|>")!;
    assert.deepEqual(beginning.encodeText("the"), [begin, beginning.tokenId("the")]);
    assert.deepEqual(beginning.encode("the"), [beginning.tokenId("the")]);
    assert.deepEqual(tokenizer.encodeText("the"), tokenizer.encode("the"));
  });

  test("decode() leaves out special tokens only if the option is set", () => {
    const ids = tokenizer.encode("hi<|im_end|>");
    assert.equal(tokenizer.decode(ids), "hi<|im_end|>");
    assert.equal(tokenizer.decode(ids, { skipSpecialTokens: true }), "hi");
  });

  test("stopTokenIds has the end of a turn and the ids of the generation config", () => {
    assert.equal(tokenizer.eosTokenId, tokenizer.tokenId("<|im_end|>"));
    assert.deepEqual(
      tokenizer.stopTokenIds,
      [tokenizer.tokenId("<|endoftext|>")!, tokenizer.tokenId("<|im_end|>")!].sort((a, b) => a - b),
    );
  });

  test("vocabSize is one more than the largest id", () => {
    assert.notEqual(tokenizer.tokenOf(tokenizer.vocabSize - 1), undefined);
    assert.equal(tokenizer.tokenOf(tokenizer.vocabSize), undefined);
  });

  test("specialTokens reads names given as text and as objects", () => {
    assert.equal(tokenizer.specialTokens.eos_token, "<|im_end|>");
    assert.equal(tokenizer.specialTokens.pad_token, "<|endoftext|>");
  });
});

describe("EncodingCache", () => {
  test("drops the least recently used text when it is full", () => {
    const cache = new EncodingCache({ maxEntries: 2, maxValues: 1_000 });
    const encoded: string[] = [];
    const encode = (text: string) => {
      encoded.push(text);
      return [text.length];
    };
    for (const text of ["a", "b", "a", "c", "a", "b"]) cache.getOrEncode(text, encode);
    assert.deepEqual(encoded, ["a", "b", "c", "b"]);
    assert.equal(cache.size, 2);
  });

  test("drops texts when their total size is too large", () => {
    const cache = new EncodingCache({ maxEntries: 100, maxValues: 1_000 });
    for (const name of ["a", "b", "c"]) cache.getOrEncode(name.repeat(300), () => new Array(100).fill(0));
    assert.equal(cache.size, 2);
    const again = cache.getOrEncode("c".repeat(300), () => assert.fail("it is kept"));
    assert.equal(again.length, 100);
  });

  test("does not keep very long texts", () => {
    const cache = new EncodingCache({ maxEntries: 2, maxValues: 1_000 });
    cache.getOrEncode("x".repeat(10_000), () => [1]);
    assert.equal(cache.size, 0);
  });
});
