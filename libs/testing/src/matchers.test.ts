import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { assertAllClose, assertClose } from "./matchers.ts";

describe("assertAllClose()", () => {
  test("allows a difference relative to the expected value, and an absolute one near zero", () => {
    assertAllClose([1000.005, 1e-9], [1000, 0]);
    assertAllClose(new Float32Array([0.1]), [0.1], { rtol: 1e-6 });
  });

  test("names the element with the largest difference", () => {
    assert.throws(
      () => assertAllClose([1, 2.5, 3.1], [1, 2, 3], { what: "gradient" }),
      /gradient: 2 of 3 differ.*most at 1: actual 2\.5, expected 2/,
    );
  });

  test("counts NaN as close only to NaN", () => {
    assertAllClose([Number.NaN, Number.POSITIVE_INFINITY], [Number.NaN, Number.POSITIVE_INFINITY]);
    assert.throws(() => assertClose(Number.NaN, 1), /actual NaN, expected 1/);
    assert.throws(() => assertClose(1, Number.NaN), /expected NaN/);
    assert.throws(() => assertClose(1, Number.POSITIVE_INFINITY), /expected Infinity/);
  });

  test("requires equal lengths", () => {
    assert.throws(() => assertAllClose([1], [1, 2]), /length/);
  });
});
