import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { describe, test } from "node:test";
import { Button, DETAILS } from "../pages.ts";
import { tokenSetRatio } from "../token-set-ratio.ts";
import { FAMILIES, makeProducts } from "./make-products.ts";
import type { Product } from "./product.ts";

const products = makeProducts(0, 1_000);
const textsOf = ({ title, features, description }: Product) =>
  [title, ...features, description].join("\n").toLowerCase();

describe("makeProducts()", () => {
  test("a thousand products are of 30 categories and 73 kinds, with an id of their own each", () => {
    assert.equal(new Set(products.map(({ category }) => category.slice(0, 2).join("/"))).size, 30);
    assert.equal(new Set(products.map(({ query }) => query)).size, 73);
    assert.equal(new Set(products.map(({ id }) => id.toLowerCase())).size, 1_000);
    for (const { id } of products) assert.match(id, /^B0[0-9A-Z]{8}$/);
  });

  test("every product has 2 to 6 attributes, up to 3 groups of options, a description and features", () => {
    const numGroups = new Set<number>();
    for (const product of products) {
      const { attributes, options, features, description, price } = product;
      assert.ok(attributes.length >= 2 && attributes.length <= 6);
      assert.equal(new Set(attributes).size, attributes.length);
      numGroups.add(options.length);
      for (const { values } of options) assert.ok(values.length >= 2);
      assert.equal(features.length, attributes.length + 1);
      assert.ok(description.length > 50);
      assert.ok(price[0] > 3 && price[0] <= price[1], `${product.title} ${price}`);
      assert.equal(price[1], Number(price[1].toFixed(2)));
    }
    assert.deepEqual([...numGroups].sort(), [0, 1, 2, 3]);
  });

  test("the nouns of a product stand in its title", () => {
    for (const { title, nouns } of products) {
      for (const noun of nouns)
        assert.ok(
          title
            .toLowerCase()
            .split(/[\s,-]+/)
            .includes(noun),
          `${title}: ${noun}`,
        );
    }
  });

  test("its texts name all of its attributes, and no other attribute of its family counts as one of them", () => {
    for (const product of products) {
      const texts = textsOf(product);
      const family = FAMILIES.find(({ attributes }) => Object.hasOwn(attributes, product.attributes[0]!))!;
      for (const attribute of product.attributes) assert.ok(texts.includes(attribute));
      for (const other of Object.keys(family.attributes)) {
        if (product.attributes.includes(other)) continue;
        assert.ok(!texts.includes(other), `${product.title} names ${other}`);
        for (const own of product.attributes) assert.ok(tokenSetRatio(own, other) <= 85, `${own}, ${other}`);
      }
    }
  });

  test("values that a product offers are not alike, and none is the name of a button", () => {
    const buttons = new Set<string>([...Object.values(Button), ...DETAILS]);
    for (const { options } of products) {
      const values = options.flatMap((group) => group.values);
      assert.equal(new Set(values).size, values.length);
      for (const { values: group } of options) {
        for (const [index, value] of group.entries()) {
          assert.equal(value, value.toLowerCase());
          assert.ok(!buttons.has(value));
          for (const other of group.slice(index + 1)) {
            assert.ok(tokenSetRatio(value, other) <= 85, `${value}, ${other}`);
          }
        }
      }
    }
  });

  test("many products share brand and kind with others, and differ in attributes, options or price", () => {
    const byName = Map.groupBy(products, ({ title }) => title.split(",")[0]!);
    const related = [...byName.values()].filter(({ length }) => length > 1);
    assert.ok(related.flat().length > 500, `${related.flat().length}`);
    const differences = related.map(
      (group) => new Set(group.map(({ id, title, ...rest }) => JSON.stringify(rest))),
    );
    for (const [index, group] of related.entries()) assert.equal(differences[index]!.size, group.length);
  });

  test("a larger shop holds the products of a smaller one", () => {
    assert.deepEqual(makeProducts(0, 1_100).slice(0, 1_000), products);
    assert.deepEqual(makeProducts(0, 1), products.slice(0, 1));
  });

  test("a shop's seed gives the same products on every machine, and another seed others", () => {
    // Changes only if the products do: then rewards of earlier runs are not comparable with later ones.
    assert.equal(hash("sha256", JSON.stringify(products)).slice(0, 16), "8bc278e610ebbb30");
    const others = new Set(makeProducts(1, 1_000).map(({ id }) => id));
    assert.ok(products.every(({ id }) => !others.has(id)));
  });
});
