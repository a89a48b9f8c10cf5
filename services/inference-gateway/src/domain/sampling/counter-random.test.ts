import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { threefry2x32, uniformAt } from "./counter-random.ts";

describe("counter-random", () => {
  test("threefry2x32() gives the known answers of the Random123 distribution", () => {
    assert.deepEqual(threefry2x32(0, 0, 0, 0), [0x6b200159, 0x99ba4efe]);
    const ones = 0xffffffff;
    assert.deepEqual(threefry2x32(ones, ones, ones, ones), [0x1cb996fc, 0xbb002be7]);
    assert.deepEqual(threefry2x32(0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3), [0xc4923a9c, 0x483df7a0]);
  });

  test("uniformAt() depends on every bit of the seed and on the position", () => {
    const seen = new Set([
      uniformAt(1, 5),
      uniformAt(1, 6),
      uniformAt(2, 5),
      uniformAt(1 + 2 ** 32, 5),
      uniformAt(1 + 2 ** 52, 5),
    ]);
    assert.equal(seen.size, 5);
    assert.equal(uniformAt(1, 5), uniformAt(1, 5));
  });

  test("uniformAt() is uniform over positions and over seeds", () => {
    const buckets = new Array<number>(10).fill(0);
    const count = 20_000;
    for (let i = 0; i < count; i++) {
      buckets[Math.floor(uniformAt(42, i) * 10)]!++;
      buckets[Math.floor(uniformAt(i, 42) * 10)]!++;
    }
    const expected = (2 * count) / 10;
    const chiSquare = buckets.reduce((sum, seen) => sum + (seen - expected) ** 2 / expected, 0);
    // With 9 degrees of freedom one in a thousand seeds exceeds 27.9. The seeds of this test are fixed.
    assert.ok(chiSquare < 27.9, `chi square ${chiSquare}`);
  });
});
