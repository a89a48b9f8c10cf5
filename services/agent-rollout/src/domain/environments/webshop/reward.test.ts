import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Product } from "./catalogue/product.ts";
import type { Goal } from "./goal.ts";
import { scorePurchase, typeScore } from "./reward.ts";

const lamp: Product = {
  id: "B0LAMP0000",
  title: "Norvale Bedside Table Lamp, Easy Clean",
  nouns: ["bedside", "table", "lamp"],
  category: ["Home", "Lighting", "table lamps"],
  query: "table lamps",
  price: [39.99, 39.99],
  attributes: ["easy clean", "energy saving"],
  options: [
    { name: "color", values: ["black", "teal"] },
    { name: "style", values: ["rustic", "modern"] },
  ],
  description: "Made of Solid Wood.",
  features: ["Child safe corners"],
  reviews: [],
};
const goal: Goal = {
  instruction: "Find me a lamp",
  product: lamp,
  attributes: ["energy saving", "easy clean"],
  options: [
    { name: "color", value: "teal" },
    { name: "style", value: "modern" },
  ],
  priceLimit: 40,
};
const chosen = new Map([
  ["color", "teal"],
  ["style", "modern"],
]);
const rewardOf = (
  changes: Partial<Product>,
  options: ReadonlyMap<string, string> = chosen,
  wanted: Partial<Goal> = {},
) => scorePurchase({ product: { ...lamp, ...changes }, chosen: options }, { ...goal, ...wanted }).reward;

describe("scorePurchase()", () => {
  test("all that was wanted gives exactly 1", () => {
    assert.deepEqual(scorePurchase({ product: lamp, chosen }, goal), {
      reward: 1,
      type: 1,
      attributes: 2,
      options: 2,
      isPriceRight: true,
    });
  });

  test("each attribute, option and the price is worth the same share", () => {
    assert.equal(rewardOf({}, new Map([["color", "teal"]])), 4 / 5);
    assert.equal(rewardOf({}, new Map()), 3 / 5);
    assert.equal(rewardOf({ price: [41, 41] }), 4 / 5);
    assert.equal(rewardOf({ attributes: ["easy clean"] }), 4 / 5);
    assert.equal(rewardOf({ attributes: [], title: "Lamp", price: [50, 50] }, new Map()), 0);
  });

  test("options that were not asked for take nothing away, and a goal without options is counted without them", () => {
    const wanted = { options: [], attributes: ["energy saving"] };
    assert.equal(rewardOf({}, chosen, wanted), 1);
    assert.equal(rewardOf({ price: [41, 41] }, chosen, wanted), 1 / 2);
  });

  test("the price may be equal to the limit, and of two prices the higher one counts", () => {
    assert.equal(rewardOf({ price: [40, 40] }), 1);
    assert.equal(rewardOf({ price: [39, 41] }), 4 / 5);
  });

  test("an attribute matches fuzzily, or word for word in title, features or description, whatever the case", () => {
    const one = (attribute: string) => rewardOf({}, chosen, { attributes: [attribute] });
    assert.equal(one("energy savings"), 1);
    assert.equal(one("solid wood"), 1);
    assert.equal(one("child safe"), 1);
    assert.equal(one("space saving"), 3 / 4);
    assert.equal(rewardOf({ attributes: [] }), 4 / 5, "easy clean stands in the title");
  });

  test("an option matches fuzzily, whatever the name of its group", () => {
    assert.equal(
      rewardOf(
        {},
        new Map([
          ["colour", "dark teal"],
          ["look", "modern"],
        ]),
      ),
      1,
    );
    assert.equal(
      rewardOf(
        {},
        new Map([
          ["color", "black"],
          ["style", "modern"],
        ]),
      ),
      4 / 5,
    );
  });

  test("another kind of product scales the reward", () => {
    const other = { query: "plant pots", category: ["Garden", "Planters", "plant pots"] };
    // One noun of three in common is enough to be of the same kind, none gives nothing.
    assert.equal(rewardOf({ ...other, nouns: ["table", "plant"] }), 1);
    assert.equal(rewardOf({ ...other, nouns: ["plant", "pot"] }), 0);
    assert.equal(rewardOf({ nouns: ["plant", "pot"] }), 0, "even if the query is the same");
  });
});

describe("typeScore()", () => {
  const wanted = (numNouns: number) => ({
    query: "lamps",
    category: ["Home", "Lighting", "lamps"],
    nouns: Array.from({ length: numNouns }, (_, index) => `noun${index}`),
  });
  const bought = { query: "pots", category: ["Garden", "Planters", "pots"], nouns: ["noun0"] };

  test("depends on the share of the wanted nouns: above 0.2, from 0.1, below, none", () => {
    assert.equal(typeScore(bought, wanted(4)), 1);
    assert.equal(typeScore(bought, wanted(5)), 0.5);
    assert.equal(typeScore(bought, wanted(10)), 0.5);
    assert.equal(typeScore(bought, wanted(11)), 0.1);
    assert.equal(typeScore({ ...bought, nouns: ["other"] }, wanted(4)), 0);
  });

  test("the same query or two categories in common, in any order, make up for few nouns", () => {
    assert.equal(typeScore({ ...bought, query: "lamps" }, wanted(5)), 1);
    assert.equal(typeScore({ ...bought, category: ["Lighting", "Home", "pots"] }, wanted(5)), 1);
    assert.equal(typeScore({ ...bought, category: ["Home", "Home", "pots"] }, wanted(5)), 0.5);
    // Not for hardly any.
    assert.equal(typeScore({ ...bought, query: "lamps" }, wanted(11)), 0.1);
  });

  test("a product without nouns counts as a fifth alike", () => {
    assert.equal(typeScore(bought, wanted(0)), 0.5);
    assert.equal(typeScore({ ...bought, query: "lamps" }, wanted(0)), 1);
  });
});
