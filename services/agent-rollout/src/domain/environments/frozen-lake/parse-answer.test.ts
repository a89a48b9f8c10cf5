import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MOVES } from "./lake.ts";
import { formatAnswer, parseAnswer } from "./parse-answer.ts";

describe("parseAnswer()", () => {
  test("reads each of the four moves", () => {
    for (const move of MOVES) assert.equal(parseAnswer(formatAnswer(move)), move);
  });

  test("ignores white space, line breaks and case", () => {
    assert.equal(parseAnswer("I think <answer>\n  rIGHT \n</answer> is best"), "Right");
  });

  test("the first answer counts", () => {
    assert.equal(parseAnswer("<answer>Up</answer><answer>Down</answer>"), "Up");
    assert.equal(parseAnswer("<answer>Sideways</answer><answer>Down</answer>"), undefined);
  });

  test("ignores control tokens that are written as text", () => {
    assert.equal(parseAnswer("<|im_start|><answer>Le<|im_end|>ft</answer><|im_end|>"), "Left");
  });

  test("reads a long answer of many opening tags quickly", () => {
    const before = process.cpuUsage();
    assert.equal(parseAnswer("<answer>".repeat(200_000)), undefined);
    const spentMs = process.cpuUsage(before).user / 1_000;
    assert.ok(spentMs < 1_000, `${spentMs} ms`);
  });

  test("gives no move for anything else", () => {
    for (const text of [
      "",
      "Right",
      "<answer>Right",
      "<answer></answer>",
      "<answer>Right Up</answer>",
      "<Answer>Up</Answer>",
    ]) {
      assert.equal(parseAnswer(text), undefined, text);
    }
  });
});
