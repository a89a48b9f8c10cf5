import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fuzz } from "@hone/testing/fuzz";
import fc from "fast-check";
import { lastBoxed } from "./boxed.ts";
import { isSameAnswer, normalizeMath, scoreMath } from "./math.ts";

describe("lastBoxed()", () => {
  const cases: [text: string, held: string | undefined][] = [
    ["so \\boxed{72}", "72"],
    ["\\boxed{1} and \\boxed{2}", "2"],
    ["\\boxed{\\frac{1}{2}} done", "\\frac{1}{2}"],
    ["$\\boxed 5$ is it", "5"],
    ["$\\boxed 5$ or \\boxed{6}", "5"],
    ["\\boxed{2} then \\boxed{", undefined],
    ["\\boxed{2} then \\boxed", undefined],
    ["\\boxed{}", ""],
    ["\\fbox{3}", undefined],
    ["no box", undefined],
  ];
  for (const [text, held] of cases)
    test(`of ${JSON.stringify(text)}`, () => assert.equal(lastBoxed(text), held));

  test("gives back whatever balanced text was boxed, whatever stands around it", () => {
    const { tree } = fc.letrec<{ tree: string }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4, depthSize: "small" },
        fc.stringMatching(/^[a-z0-9+\\]{0,6}$/),
        tie("tree").map((inner) => `{${inner}}`),
        fc.tuple(tie("tree"), tie("tree")).map(([a, b]) => a + b),
      ),
    }));
    const words = fc.stringMatching(/^[a-z {}$]{0,30}$/);
    fc.assert(
      fc.property(words, tree, words, (before, held, after) => {
        fc.pre(!`${before}${held}`.includes("boxed"));
        assert.equal(lastBoxed(`${before}\\boxed{${held}}${after}`), held);
      }),
      fuzz(500),
    );
  });
});

describe("scoreMath()", () => {
  const cases: [solution: string, truth: string, score: number][] = [
    ["\\boxed{.5}", "0.5", 1],
    ["\\boxed{5\\text{cm}}", "5", 0],
    ["\\boxed{5\\text{ cm}}", "5", 1],
    ["\\boxed{2} then \\boxed{", "2", 0],
    ["\\boxed{0.5}", "\\frac{1}{2}", 1],
    ["\\boxed{1/2}", "\\frac{1}{2}", 1],
    ["\\boxed{\\frac12}", "\\frac{1}{2}", 1],
    ["\\boxed{\\tfrac{1}{2}}", "\\dfrac{1}{2}", 1],
    ["\\boxed{\\dfrac1{72}}", "\\frac{1}{72}", 1],
    ["\\boxed{\\sqrt3}", "\\sqrt{3}", 1],
    ["\\boxed{\\left( 1, 2 \\right)}", "(1,2)", 1],
    ["\\boxed{x=5}", "5", 1],
    ["\\boxed{k = 5}", "5", 1],
    ["\\boxed{abc=5}", "5", 0],
    ["\\boxed{50\\%}", "50", 1],
    ["\\boxed{90^\\circ}", "90", 1],
    ["\\boxed{90^{\\circ}}", "90", 1],
    ["\\boxed{\\$18}", "18", 1],
    ["\\boxed{1\\!000}", "1000", 1],
    ["\\boxed{1,000}", "1000", 0],
    ["\\boxed{\\frac{a}{b} .5}", "\\frac{a}{b}0.5", 1],
    ["$\\boxed 5$", "5", 1],
    ["the answer is 5", "5", 0],
    ["\\boxed{72}", "73", 0],
  ];
  for (const [solution, truth, score] of cases) {
    test(`${solution} for ${truth} is worth ${score}`, () => assert.equal(scoreMath(solution, truth), score));
  }

  test("what cannot be normalised is right only where it is the same text", () => {
    for (const broken of ["\\sqrt", "\\frac", "1\\text{ a}\\text{ b}"]) {
      assert.equal(normalizeMath(broken), undefined);
      assert.ok(isSameAnswer(broken, broken));
      assert.ok(!isSameAnswer(broken, `${broken} `));
    }
    assert.equal(normalizeMath("\\frac1"), "\\frac1");
    assert.equal(normalizeMath("03/4"), "03/4");
  });

  test("an answer is always its own, and spaces change nothing", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), (text) => {
        assert.ok(isSameAnswer(text, text));
      }),
      fuzz(500),
    );
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 1 }), (a, b) => {
        assert.ok(isSameAnswer(`${a} / ${b}`, `\\frac{${a}}{${b}}`));
        assert.ok(isSameAnswer(` ${a} `, `${a}`));
      }),
      fuzz(200),
    );
  });
});
