import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Gsm8kMethod, scoreGsm8k, scoreMath, scoreMathDapo } from "../index.ts";

/* The attacker is a policy that writes whatever keeps a judge busy: every scorer takes time in proportion to its text. */

const LENGTH = 200_000;
/** A pattern whose time grows by the square of the length takes minutes for so many characters. */
const AT_MOST_MS = 5_000;
const PIECES = [
  "\\boxed{",
  "{",
  "}",
  "\\boxed{\\boxed{",
  "$",
  "$ ",
  "\\text{",
  "\\textbf{",
  "\\overline{",
  "\\frac",
  "\\frac{1}",
  "frac",
  "sqrt",
  "\\sqrt",
  "\\sqrt{",
  "1,",
  "1,000",
  "#### ",
  "#### -",
  "-",
  ".",
  "0.",
  "answer:",
  "answer: ",
  "answer :",
  "answer \n",
  " ",
  "\n",
  "\t",
  "\u3000",
  "1/",
  "=",
  "\\left",
  "^{\\circ}",
  "\\%",
  "and",
  "a",
];
const texts = PIECES.flatMap((piece) => {
  const long = piece.repeat(Math.ceil(LENGTH / piece.length));
  return [long, `\\boxed{${long}}`, `answer: ${long}`, `${long}$`, `\\boxed{x ${long}`];
});

describe("scorers of answers that a model wrote", () => {
  for (const [name, score] of [
    ...Object.values(Gsm8kMethod).map(
      (method) => [`gsm8k, ${method}`, (text: string) => scoreGsm8k(text, "72", method)] as const,
    ),
    ["math", (text: string) => scoreMath(text, "72")],
    ["math_dapo", (text: string) => scoreMathDapo(text, "72")],
  ] as const) {
    test(`${name}: takes time in proportion to the text`, () => {
      for (const text of texts) {
        const startedAt = performance.now();
        score(text);
        const ms = performance.now() - startedAt;
        assert.ok(ms < AT_MOST_MS, `${ms} ms for ${JSON.stringify(text.slice(0, 40))}`);
      }
    });
  }
});
