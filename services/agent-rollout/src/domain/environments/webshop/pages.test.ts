import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readShopAction } from "./actions.ts";
import { makeProducts } from "./catalogue/make-products.ts";
import type { Product } from "./catalogue/product.ts";
import {
  type ItemPage,
  linksOf,
  type Page,
  type PageRules,
  pageAfter,
  productsOn,
  SEARCH_PAGE,
} from "./pages.ts";
import { Shop } from "./shop.ts";

/** Products that differ in their ids alone, so that they are found in this order. */
const mugs: Product[] = Array.from({ length: 25 }, (_, index) => ({
  ...makeProducts(0, 1)[0]!,
  id: `B0MUG${index}`,
  title: "A plain mug",
  options: [
    { name: "color", values: ["red", "blue"] },
    { name: "size", values: ["small", "large"] },
  ],
}));
const shop = new Shop(mugs);
const rules: PageRules = {
  resultsPerPage: 10,
  maxResults: 50,
  details: ["description", "features", "reviews"],
};

/** The page to which these actions lead. */
function after(actions: readonly string[], changed: Partial<PageRules> = {}): Page {
  return actions.reduce<Page>(
    (page, action) => pageAfter(page, readShopAction(action)!, shop, { ...rules, ...changed }),
    SEARCH_PAGE,
  );
}
const linksAfter = (actions: readonly string[], changed: Partial<PageRules> = {}) =>
  linksOf(after(actions, changed), { ...rules, ...changed }).map(({ name }) => name);
const idsOf = (from: number, to: number) => mugs.slice(from, to).map(({ id }) => id.toLowerCase());

/** The way to an item's page. */
const TO_ITEM = ["search[mug]", "click[b0mug3]"];

describe("the search page", () => {
  test("has nothing to click, and leads to results", () => {
    assert.deepEqual(linksOf(SEARCH_PAGE, rules), []);
    assert.equal(after(["click[b0mug3]"]), SEARCH_PAGE);
    assert.equal(after(["search[mug]"]).kind, "results");
  });
});

describe("a page of results", () => {
  test("shows ten products, and turns to the next and the previous ten", () => {
    assert.deepEqual(linksAfter(["search[mug]"]), ["back to search", "next >", ...idsOf(0, 10)]);
    const second = ["search[mug]", "click[next >]"];
    assert.deepEqual(linksAfter(second), ["back to search", "< prev", "next >", ...idsOf(10, 20)]);
    assert.deepEqual(linksAfter([...second, "click[Next >]"]), [
      "back to search",
      "< prev",
      ...idsOf(20, 25),
    ]);
    assert.deepEqual(after([...second, "click[< prev]"]), after(["search[mug]"]));
  });

  test("has no page after the last one", () => {
    const last = ["search[mug]", "click[next >]", "click[next >]"];
    assert.deepEqual(after([...last, "click[next >]"]), after(last));
    assert.ok(!linksAfter(["search[mug]", "click[next >]"], { maxResults: 20 }).includes("next >"));
  });

  test("shows as many products as the rules say, of as many as a search finds", () => {
    const changed = { maxResults: 3, resultsPerPage: 2 };
    assert.deepEqual(linksAfter(["search[mug]"], changed), ["back to search", "next >", ...idsOf(0, 2)]);
    assert.deepEqual(linksAfter(["search[mug]", "click[next >]"], changed), [
      "back to search",
      "< prev",
      ...idsOf(2, 3),
    ]);
  });

  test("may show nothing, with a way back", () => {
    assert.deepEqual(linksAfter(["search[quantum]"]), ["back to search"]);
    assert.equal(after(["search[quantum]", "click[back to search]"]), SEARCH_PAGE);
  });

  test("has no search bar, and opens only what it shows", () => {
    const results = after(["search[mug]"]);
    assert.equal(pageAfter(results, readShopAction("search[lamp]")!, shop, rules), results);
    assert.equal(pageAfter(results, readShopAction("click[b0mug10]")!, shop, rules), results);
    assert.equal(pageAfter(results, readShopAction("click[buy now]")!, shop, rules), results);
  });
});

describe("the page of an item", () => {
  const options = ["red", "blue", "small", "large"];

  test("has WebShop's buttons and then the options", () => {
    const buttons = ["back to search", "< prev", "description", "features", "reviews"];
    assert.deepEqual(linksAfter(TO_ITEM), [...buttons, "buy now", ...options]);
    const details = [...rules.details, "attributes"] as const;
    assert.deepEqual(linksAfter(TO_ITEM, { details }), [...buttons, "attributes", "buy now", ...options]);
  });

  test("keeps one value of each group, the last one that was clicked", () => {
    const page = after([...TO_ITEM, "click[Red]", "click[large]", "click[blue]"]) as ItemPage;
    assert.deepEqual(Object.fromEntries(page.chosen), { color: "blue", size: "large" });
    assert.equal(page.product, mugs[3]);
  });

  test("stays the same page if a chosen option is clicked again", () => {
    const page = after([...TO_ITEM, "click[red]"]);
    assert.equal(pageAfter(page, readShopAction("click[red]")!, shop, rules), page);
  });

  test("goes back to the page of results that it was opened from, and then forgets what was chosen", () => {
    const way = ["search[mug]", "click[next >]", "click[b0mug12]", "click[red]"];
    assert.deepEqual(after([...way, "click[< prev]"]), after(way.slice(0, 2)));
    const again = after([...way, "click[< prev]", "click[b0mug12]"]) as ItemPage;
    assert.equal(again.chosen.size, 0);
  });

  test("leads to its details, which lead back to it with what was chosen", () => {
    for (const detail of rules.details) {
      const way = [...TO_ITEM, "click[red]", `click[${detail}]`];
      assert.deepEqual(linksAfter(way), ["back to search", "< prev"]);
      assert.deepEqual(after([...way, "click[< prev]"]), after([...TO_ITEM, "click[red]"]));
      assert.equal(after([...way, "click[back to search]"]), SEARCH_PAGE);
    }
    assert.deepEqual(after([...TO_ITEM, "click[attributes]"]), after(TO_ITEM), "they are not shown");
  });

  test("sells the item as it was chosen, and then the shop is closed", () => {
    const page = after([...TO_ITEM, "click[small]", "click[buy now]"]);
    assert.ok(page.kind === "done");
    assert.deepEqual(page.item, after([...TO_ITEM, "click[small]"]));
    assert.deepEqual(linksOf(page, rules), []);
    assert.equal(pageAfter(page, readShopAction("search[mug]")!, shop, rules), page);
  });
});

test("names of JavaScript's prototypes are nothing to click", () => {
  for (const way of [[], ["search[mug]"], TO_ITEM, [...TO_ITEM, "click[reviews]"]]) {
    const page = after(way);
    for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty", "length", "0"]) {
      assert.equal(pageAfter(page, { kind: "click", value: name }, shop, rules), page);
    }
  }
});

test("a shop finds the same products for the same words, whatever their case", () => {
  assert.deepEqual(
    productsOn({ kind: "results", found: shop.search("PLAIN mug", 5), number: 1 }, rules).map(({ id }) => id),
    mugs.slice(0, 5).map(({ id }) => id),
  );
  assert.equal(shop.search("plain mug", 5), shop.search("PLAIN mug", 5));
  assert.equal(shop.search("plain mug", 7).length, 7);
});
