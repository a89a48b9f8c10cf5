import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { splitMinibatches } from "./minibatches.ts";

describe("splitMinibatches()", () => {
  test("keeps the order and cuts as equally as possible", () => {
    assert.deepEqual(splitMinibatches([0, 1, 2, 3, 4, 5, 6], 3), [
      [0, 1],
      [2, 3],
      [4, 5, 6],
    ]);
    assert.deepEqual(splitMinibatches([0, 1, 2, 3], 2), [
      [0, 1],
      [2, 3],
    ]);
  });

  test("makes no empty minibatch", () => {
    assert.deepEqual(splitMinibatches([0, 1], 8), [[0], [1]]);
    assert.deepEqual(splitMinibatches([], 8), []);
  });
});
