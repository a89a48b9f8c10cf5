import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  COMPACT_KINDS,
  COMPACT_PRICES,
  MAX_COMPACT_PRODUCTS,
  makeCompactProducts,
} from "./compact-products.ts";

describe("makeCompactProducts()", () => {
  const products = makeCompactProducts(0, MAX_COMPACT_PRODUCTS);

  test("ids are p01 to p99, and the kinds take turns", () => {
    assert.deepEqual([products[0]!.id, products.at(-1)!.id], ["p01", "p99"]);
    assert.deepEqual(
      products.slice(0, 5).map(({ query }) => query),
      COMPACT_KINDS,
    );
  });

  test("titles say it all: two different attributes and the kind", () => {
    for (const { title, attributes, query, price } of products) {
      assert.equal(new Set(attributes).size, 2);
      assert.equal(title, `${attributes.join(" ")} ${query}`);
      assert.ok(COMPACT_PRICES.includes(price[1]) && price[1] <= 30);
    }
  });

  test("a seed gives the same products again, and a larger shop holds those of a smaller one", () => {
    assert.deepEqual(makeCompactProducts(0, 20), products.slice(0, 20));
    assert.notDeepEqual(makeCompactProducts(1, 20), products.slice(0, 20));
  });
});
