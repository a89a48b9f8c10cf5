import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fuzz } from "@hone/testing/fuzz";
import fc from "fast-check";
import { readRanking, valuesOf } from "./group.ts";

describe("readRanking()", () => {
  const cases: [content: string, count: number, places: number[] | undefined][] = [
    ["Ranking: 2 > 1 = 3", 3, [1, 0, 1]],
    ["Reasons.\n**Ranking:** 1 > 2", 2, [0, 1]],
    ["Ranking: 1 > 2\nOn second thought\nRanking: 2 > 1", 2, [1, 0]],
    ["Ranking: 1 > 2", 3, undefined],
    ["Ranking: 1 > 1 > 2", 2, undefined],
    ["Ranking: 1 > 3", 2, undefined],
    ["Ranking: 0 > 1", 2, undefined],
    ["Ranking: 1 > > 2", 2, undefined],
    ["I cannot say.", 2, undefined],
  ];
  for (const [content, count, places] of cases) {
    test(`reads ${JSON.stringify(content)} of ${count} answers as ${places ?? "no ranking"}`, () =>
      assert.deepEqual(readRanking(content, count), places));
  }
});

describe("valuesOf()", () => {
  test("gives 1 to the best answer and 0 to the worst", () => {
    assert.deepEqual(valuesOf([2, 0, 1]), [0, 1, 0.5]);
    assert.deepEqual(valuesOf([0, 0, 1]), [0.75, 0.75, 0]);
    assert.deepEqual(valuesOf([0, 0]), [0.5, 0.5]);
  });

  test("gives better answers more, with a mean of 0.5 in every group", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(5), { minLength: 2, maxLength: 30 }), (places) => {
        const values = valuesOf(places);
        const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
        assert.ok(Math.abs(mean - 0.5) < 1e-9, `${mean}`);
        for (const [a, placeA] of places.entries()) {
          for (const [b, placeB] of places.entries()) {
            if (placeA < placeB) assert.ok(values[a]! > values[b]!);
            if (placeA === placeB) assert.equal(values[a], values[b]);
          }
        }
      }),
      fuzz(200),
    );
  });
});
