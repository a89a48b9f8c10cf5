import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Comparison, formatComparisons, judge, Verdict } from "./comparison.ts";

const RATE: Comparison = {
  name: "sampling",
  unit: "tokens/s",
  better: "higher",
  hone: { kind: "measured", values: [300, 200, 330] },
  peer: { name: "vLLM", figures: { kind: "measured", values: [150, 200, 110] } },
  target: { kind: "at least", bar: 1.5, aim: 2.5 },
  productShare: [80, 60, 90],
};

describe("judge()", () => {
  test("compares the sides round by round, and judges the median of the ratios", () => {
    const { figure, verdict } = judge(RATE);
    assert.deepEqual(figure, { kind: "measured", values: [2, 1, 3] });
    assert.equal(verdict, Verdict.bar);
  });

  test("a ratio above 1 means that Hone is better, also for times", () => {
    const { figure } = judge({ ...RATE, better: "lower" });
    assert.deepEqual(figure, { kind: "measured", values: [0.5, 1, 1 / 3] });
  });

  const verdicts: [what: string, values: number[], expected: Verdict][] = [
    ["at the aim", [450, 600, 275], Verdict.aim],
    ["below the bar", [100, 200, 110], Verdict.missed],
  ];
  for (const [what, values, expected] of verdicts) {
    test(`a median ${what} gets this verdict`, () => {
      assert.equal(judge({ ...RATE, hone: { kind: "measured", values } }).verdict, expected);
    });
  }

  test("growth and memory are compared with an upper limit, without a peer", () => {
    const { peer: _, ...alone } = RATE;
    const target = { kind: "at most", bar: 250, aim: 200 } as const;
    const missed = judge({ ...alone, target });
    assert.deepEqual([missed.figure, missed.verdict], [RATE.hone, Verdict.missed]);
    const reached = judge({ ...alone, target, hone: { kind: "measured", values: [240] } });
    assert.equal(reached.verdict, Verdict.bar);
  });

  test("a row has no verdict if one side is missing", () => {
    const figures = { kind: "missing", reason: "not installed" } as const;
    const withoutPeer = judge({ ...RATE, peer: { name: "vLLM", figures } });
    assert.deepEqual([withoutPeer.figure, withoutPeer.verdict], [figures, Verdict.open]);
    assert.equal(judge({ ...RATE, hone: figures }).verdict, Verdict.open);
  });
});

describe("the table of comparisons", () => {
  test("shows both sides, their ratio, the target and the share of the matrix product", () => {
    const figures = { kind: "missing", reason: "not installed" } as const;
    const lines = formatComparisons([RATE, { ...RATE, peer: { name: "vLLM", figures } }].map(judge));
    assert.deepEqual(
      lines.map((line) => line.replace(/ {2,}/g, " | ")),
      [
        "work | unit | Hone | peer | ratio | bar | aim | of the product",
        "sampling, against vLLM | tokens/s | 300 | 150 | 2.00 | >= 1.5 | >= 2.5 | 80 % | bar reached",
        "sampling, against vLLM | tokens/s | 300 | - | - | >= 1.5 | >= 2.5 | 80 % | not measured: not installed",
      ],
    );
  });
});
