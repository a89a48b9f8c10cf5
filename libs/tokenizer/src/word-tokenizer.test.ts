import assert from "node:assert/strict";
import { test } from "node:test";
import { ChatRenderer } from "./chat-renderer.ts";
import { makeTokenizer } from "./load-tokenizer.ts";
import { wordTokenizerFiles } from "./word-tokenizer.ts";

test("wordTokenizerFiles() makes a tokenizer with one token for each word, character and role mark", () => {
  const files = wordTokenizerFiles({
    roles: ["user", "assistant"],
    words: ["higher", "lower"],
    characters: [..."0123"],
  });
  const tokenizer = makeTokenizer(files, "test");
  assert.equal(tokenizer.vocabSize, 5 + 2 + 4);
  const { text, tokenIds } = new ChatRenderer(tokenizer).render([
    { role: "user", content: "lower" },
    { role: "assistant", content: "3" },
    { role: "user", content: "higher?" },
  ]);
  assert.equal(text, "<|user|>lower<|assistant|>3<|end|><|user|>higher?<|assistant|>");
  assert.deepEqual([...tokenIds], [2, 6, 3, 10, 4, 2, 5, 1, 3]);
  assert.deepEqual([tokenizer.eosTokenId, tokenizer.isSpecial(4), tokenizer.isSpecial(5)], [4, true, false]);
});
