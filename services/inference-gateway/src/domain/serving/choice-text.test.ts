import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { chatmlTokenizer } from "@hone/tokenizer/testing";
import { ChoiceText, type TextDelta } from "./choice-text.ts";

const tokenizer = chatmlTokenizer();
const END = tokenizer.tokenId("<|im_end|>")!;
const START = tokenizer.tokenId("<|im_start|>")!;

/** The deltas when the tokens come one by one. */
function deltasOf(ids: readonly number[], stopTexts: readonly string[] = []) {
  const choice = new ChoiceText({ tokenizer, stopTokenIds: [END], stopTexts });
  const deltas: TextDelta[] = [];
  for (const id of ids) if (!choice.isStopped) deltas.push(choice.push({ tokenIds: [id], logprobs: [-1] }));
  deltas.push(choice.end());
  return { deltas, choice };
}
const textOf = (deltas: readonly TextDelta[]) => deltas.map(({ text }) => text).join("");
const tokensOf = (deltas: readonly TextDelta[]) => deltas.flatMap(({ tokens }) => tokens);

describe("ChoiceText", () => {
  test("returns only whole characters", () => {
    const ids = tokenizer.encode("aé日🙂");
    const { deltas } = deltasOf(ids);
    assert.equal(textOf(deltas), "aé日🙂");
    assert.deepEqual(
      deltas.map(({ text }) => text).filter((text) => text !== ""),
      ["a", "é", "日", "🙂"],
    );
    assert.equal(tokensOf(deltas).length, ids.length);
  });

  test("leaves the stop token and other control tokens out of the text, but counts them", () => {
    const { deltas, choice } = deltasOf([...tokenizer.encode("hi"), START, END]);
    assert.equal(textOf(deltas), "hi");
    assert.equal(choice.tokenCount, 4);
    assert.deepEqual(
      tokensOf(deltas).map(({ tokenId }) => tokenId),
      [...tokenizer.encode("hi"), START],
    );
  });

  test("returns no token and no character of a stop text", () => {
    const { deltas, choice } = deltasOf(tokenizer.encode("one STOP two"), ["STOP"]);
    assert.equal(textOf(deltas), "one ");
    assert.equal(choice.isStopped, true);
    assert.equal(choice.tokenCount, tokenizer.encode("one STOP").length);
    assert.equal(
      tokensOf(deltas)
        .map(({ text }) => text)
        .join(""),
      "one ",
    );
  });

  test("returns the same text however the tokens are grouped", () => {
    const ids = [...tokenizer.encode("the é in STO 🙂 the STOP x"), END];
    const single = deltasOf(ids, ["STOP"]);
    const whole = new ChoiceText({ tokenizer, stopTokenIds: [END], stopTexts: ["STOP"] });
    const deltas = [whole.push({ tokenIds: ids, logprobs: ids.map(() => -1) }), whole.end()];
    assert.equal(textOf(deltas), textOf(single.deltas));
    assert.deepEqual(tokensOf(deltas), tokensOf(single.deltas));
    assert.equal(whole.tokenCount, single.choice.tokenCount);
  });

  test("returns the position of each token's text", () => {
    const { deltas } = deltasOf(tokenizer.encode("a🙂b"));
    assert.deepEqual(
      tokensOf(deltas).map(({ offset }) => offset),
      [0, 1, 1, 1, 1, 3],
    );
  });

  test("ends a text whose last character is incomplete", () => {
    const { deltas } = deltasOf(tokenizer.encode("a🙂").slice(0, 3));
    assert.match(textOf(deltas), /^a\uFFFD+$/);
  });
});
