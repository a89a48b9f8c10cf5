import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fuzz } from "@hone/testing/fuzz";
import fc from "fast-check";
import { normalizeFinalAnswer, scoreMathDapo } from "./math-dapo.ts";

describe("scoreMathDapo()", () => {
  const cases: [solution: string, truth: string, score: number][] = [
    ["Answer: \\boxed{72}", "72", 1],
    ["Answer: 72", "72", 1],
    ["answer :  72", "72", 1],
    ["Answer: 71\nAnswer: 72", "72", 1],
    ["Answer: 72\nAnswer: 71", "72", -1],
    ["Answer: 1,000", "1000", 1],
    ["Answer: $x = \\frac12$", "\\frac{1}{2}", 1],
    ["Answer: 12 inches", "12", 1],
    ["Answer: \\text{blue}", "blue", 1],
    ["\\boxed{72}", "72", 1],
    ["\\boxed{1,000}", "1000", -1],
    ["\\boxed{71} \\boxed{72", "71", -1],
    ["Answer: 71 or \\boxed{72}", "72", -1],
    ["Answer:", "72", -1],
    ["", "", -1],
  ];
  for (const [solution, truth, score] of cases) {
    test(`${JSON.stringify(solution)} for ${truth} is worth ${score}`, () => {
      const scored = scoreMathDapo(solution, truth);
      assert.equal(scored.score, score);
      assert.equal(scored.accuracy, score === 1 ? 1 : 0);
    });
  }

  test("an answer counts in the last 300 characters", () => {
    assert.equal(scoreMathDapo(`Answer: 72\n${"x".repeat(289)}`, "72").score, 1);
    assert.equal(scoreMathDapo(`Answer: 72\n${"x".repeat(290)}`, "72").score, -1);
  });

  test("a box counts in the last 100 characters", () => {
    assert.equal(scoreMathDapo(`\\boxed{72}${"x".repeat(90)}`, "72").score, 1);
    assert.equal(scoreMathDapo(`\\boxed{72}${"x".repeat(91)}`, "72").score, -1);
  });

  test("a whole number is found after any text, and normalising twice changes no number", () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(), (before, number) => {
        assert.equal(scoreMathDapo(`${before}\nAnswer: ${number}`, String(number)).score, 1);
        assert.equal(normalizeFinalAnswer(normalizeFinalAnswer(` $${number}$ `)), String(number));
      }),
      fuzz(300),
    );
  });
});
