import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { scoreGsm8k } from "./gsm8k.ts";
import { scoreMath } from "./math.ts";
import { scoreMathDapo } from "./math-dapo.ts";

type Row = [
  solution: string,
  groundTruth: string,
  strict: number,
  flexible: number,
  math: number,
  dapo: number,
];
const rows = JSON.parse(
  readFileSync(new URL("../../fixtures/verl-scores.json", import.meta.url), "utf8"),
) as Row[];

describe("scorers that carry verl's names give verl's scores", () => {
  const scorers: [name: string, column: 2 | 3 | 4 | 5, score: (solution: string, truth: string) => number][] =
    [
      ["gsm8k, strict", 2, (solution, truth) => scoreGsm8k(solution, truth, "strict")],
      ["gsm8k, flexible", 3, (solution, truth) => scoreGsm8k(solution, truth, "flexible")],
      ["math", 4, scoreMath],
      ["math_dapo", 5, (solution, truth) => scoreMathDapo(solution, truth).score],
    ];
  for (const [name, column, score] of scorers) {
    test(`${name}: ${rows.length} solutions`, () => {
      const others = rows.filter((row) => score(row[0], row[1]) !== row[column]);
      assert.deepEqual(others, []);
      assert.ok(rows.some((row) => row[column] === 1));
      assert.ok(rows.some((row) => row[column] !== 1));
    });
  }
});
