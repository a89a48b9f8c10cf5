import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fuzz } from "@hone/testing/fuzz";
import fc from "fast-check";
import { gsm8kAnswer, scoreGsm8k } from "./gsm8k.ts";

describe("scoreGsm8k()", () => {
  const cases: [solution: string, truth: string, strict: number, flexible: number][] = [
    ["6 * 12 = 72\n#### 72", "72", 1, 1],
    ["#### 72.", "72", 0, 0],
    ["#### 1,000", "1000", 1, 0],
    ["The answer is 72.", "72", 0, 0],
    ["The answer is 72 .", "72", 0, 1],
    ["#### -3", "-3", 1, 1],
    ["####72", "72", 0, 1],
    ["#### 71\n#### 72", "72", 1, 1],
    ["#### 72\n#### 71", "72", 0, 0],
    ["#### 72 . ...", "72", 1, 0],
    ["#### 72.0", "72", 0, 0],
    ["nothing here", "72", 0, 0],
    ["", "72", 0, 0],
    ["#### .", ".", 1, 1],
    ["#### $72", "72", 0, 1],
  ];
  for (const [solution, truth, strict, flexible] of cases) {
    test(`${JSON.stringify(solution)} for ${truth}: strict ${strict}, flexible ${flexible}`, () => {
      assert.equal(scoreGsm8k(solution, truth, "strict"), strict);
      assert.equal(scoreGsm8k(solution, truth, "flexible"), flexible);
    });
  }

  test("both methods of verl read the last 300 characters, last_number reads the whole text", () => {
    const tail = (length: number) => `#### 72${"x".repeat(length - 7)}`;
    assert.equal(gsm8kAnswer(`${tail(300)}`, "strict"), "72");
    assert.equal(gsm8kAnswer(`${tail(301)}`, "strict"), undefined);
    assert.equal(gsm8kAnswer(`${tail(301)}`, "flexible"), "72");
    assert.equal(gsm8kAnswer(`${tail(308)}`, "flexible"), undefined);
    assert.equal(gsm8kAnswer(`${tail(308)}`, "last_number"), "72");
    // Characters are counted, not code units.
    assert.equal(gsm8kAnswer(`#### 72${"🦊".repeat(293)}`, "strict"), "72");
    assert.equal(gsm8kAnswer(`#### 72${"🦊".repeat(294)}`, "strict"), undefined);
  });

  test("last_number leaves out what ends the sentence", () => {
    assert.equal(scoreGsm8k("The answer is 72.", "72", "last_number"), 1);
    assert.equal(scoreGsm8k("It is 72, - ...", "72", "last_number"), 1);
    assert.equal(scoreGsm8k("It is 72.5.", "72", "last_number"), 0);
  });

  test("finds any whole number after any text, and never takes longer than the text is", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 2_000 }), fc.integer(), (before, number) => {
        const solution = `${before}\n#### ${number}`;
        assert.equal(scoreGsm8k(solution, String(number), "strict"), 1);
        assert.equal(scoreGsm8k(solution, String(number), "flexible"), 1);
        assert.equal(scoreGsm8k(solution, String(number + 1), "strict"), 0);
      }),
      fuzz(500),
    );
    const before = process.cpuUsage();
    for (const text of ["-".repeat(200_000), ".,".repeat(100_000), "#### ".repeat(40_000)]) {
      gsm8kAnswer(text, "flexible");
      gsm8kAnswer(text, "last_number");
      gsm8kAnswer(text, "strict");
    }
    assert.ok(process.cpuUsage(before).user < 2_000_000);
  });
});
