import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isInRange, type NumberRange, numberIn, rangeRule } from "./number-range.ts";
import { SAMPLING_PARAMETERS } from "./parameters.ts";
import { outOfRange, samplingSchema } from "./sampling.ts";

const NUMBERS = [-1, -0.5, 0, 0.5, 1, 1.5, 2, 3, Number.NaN, Number.POSITIVE_INFINITY];

describe("a range of numbers", () => {
  const cases: readonly (readonly [range: NumberRange, rule: string, inRange: readonly number[]])[] = [
    [{ lowest: 0, highest: 1 }, "must be from 0 to 1", [0, 0.5, 1]],
    [{ lowest: 0, isAbove: true, highest: 1 }, "must be above 0 and at most 1", [0.5, 1]],
    [{ lowest: 1, isWhole: true }, "must be a whole number of at least 1", [1, 2, 3]],
    [{ lowest: -1, highest: 2, isWhole: true }, "must be a whole number from -1 to 2", [-1, 0, 1, 2]],
  ];
  for (const [range, rule, inRange] of cases) {
    test(`that ${rule}: its check and its schema accept the same numbers`, () => {
      assert.equal(rangeRule(range), rule);
      assert.deepEqual(
        NUMBERS.filter((number) => isInRange(number, range)),
        inRange,
      );
      assert.deepEqual(
        NUMBERS.filter((number) => numberIn(range).safeParse(number).success),
        inRange,
      );
    });
  }
});

describe("sampling", () => {
  test("of a run file that says nothing has each parameter's default", () => {
    assert.deepEqual(samplingSchema.parse({}), {
      temperature: 1,
      topP: 1,
      topK: 0,
      minP: 0,
      repetitionPenalty: 1,
      maxNewTokens: 256,
    });
    assert.equal(samplingSchema.safeParse({ maxNewTokens: 100_000 }).success, false);
    assert.equal(samplingSchema.safeParse({ unknown: 1 }).success, false);
  });

  test("of a call may leave out only what is optional, and the first value out of range is told", () => {
    const sampling = { temperature: 1, topP: 1, topK: 0, maxNewTokens: 100_000 };
    assert.equal(outOfRange(SAMPLING_PARAMETERS, sampling), undefined);
    assert.deepEqual(outOfRange(SAMPLING_PARAMETERS, { ...sampling, topK: 1.5, minP: 2 }), {
      name: "topK",
      value: 1.5,
      rule: "must be a whole number of at least 0",
    });
    const { topP: _, ...incomplete } = sampling;
    assert.equal(outOfRange(SAMPLING_PARAMETERS, incomplete)?.name, "topP");
  });
});
