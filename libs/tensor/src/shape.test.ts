import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { addDims, checkBroadcastShape, divideDims, multiplyDims } from "./shape.ts";

describe("dimensions", () => {
  test("products have one form, independent of the order of their factors", () => {
    assert.equal(multiplyDims(multiplyDims("b", 2), multiplyDims(3, "a")), "6*a*b");
    assert.equal(multiplyDims("6*a*b", 0), 0);
    assert.equal(multiplyDims(2, 3), 6);
  });

  test("a quotient is undefined unless it is whole for every size", () => {
    assert.equal(divideDims("6*a*b", "2*b"), "3*a");
    assert.equal(divideDims("6*a", 4), undefined);
    assert.equal(divideDims("a", "b"), undefined);
    assert.equal(divideDims("a*a", "a"), "a");
  });

  test("a product treats a sum as one factor", () => {
    const sum = addDims("past", "tokens");
    assert.equal(divideDims(multiplyDims(sum, 4), sum), 4);
    assert.equal(addDims(0, "tokens"), "tokens");
    assert.equal(addDims(1, 2), 3);
    assert.equal(addDims("3*queries", "3*queries"), multiplyDims(6, "queries"));
  });

  test("broadcasting repeats axes of size 1, and a symbolic size never equals a number", () => {
    assert.deepEqual(checkBroadcastShape("Add", ["b", 1, 3], ["t", 1]), ["b", "t", 3]);
    assert.throws(
      () => checkBroadcastShape("Add", ["b"], [2]),
      /Cannot apply Add: .* the shapes are \[b\] and \[2\]/,
    );
  });
});
