import assert from "node:assert/strict";
import { test } from "node:test";
import { firstTokensOf } from "./token-order.ts";

test("firstTokensOf() puts tokens in the order of the sequences", () => {
  const items = [{ count: 3 }, { count: 1 }, { count: 5 }];
  assert.deepEqual(firstTokensOf(items, [0, 1, 2]), [0, 3, 4]);
  assert.deepEqual(firstTokensOf(items, [2, 0, 1]), [6, 0, 1]);
  assert.deepEqual(firstTokensOf([], []), []);
});
