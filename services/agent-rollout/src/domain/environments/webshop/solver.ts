/**
 * A shopper who knows from which product the goal was made: searches for it, opens it, chooses its options and buys it. It
 * shows that a task can be solved, and how.
 */

import { clickAction, searchAction } from "./actions.ts";
import type { Goal } from "./goal.ts";
import { Button, type ItemPage, type Page, type PageRules, productsOn, type ResultsPage } from "./pages.ts";
import type { Shop } from "./shop.ts";

/** What a shopper sees and knows. */
export interface Situation {
  readonly page: Page;
  readonly goal: Goal;
  readonly shop: Shop;
  readonly rules: PageRules;
}

/** The next action on the shortest way to reward 1. */
export function solvingAction({ page, goal, shop, rules }: Situation): string {
  switch (page.kind) {
    case "search":
      return searchAction(bestSearch(goal, shop, rules));
    case "results":
      return clickAction(onResults(page, goal, rules));
    case "item":
      return clickAction(onItem(page, goal));
    case "detail":
      return clickAction(Button.previous);
    case "done":
      throw new TypeError("nothing can be done after the purchase");
    default:
      return page satisfies never;
  }
}

/** Of a shopper's words and the product's title, those that show the product first. */
function bestSearch({ product, attributes, options }: Goal, shop: Shop, { maxResults }: PageRules): string {
  const values = options.map(({ value }) => value);
  const searches = [product.query, [...attributes, product.query].join(" "), product.title];
  searches.push([product.title, ...product.features, ...values].join(" "));
  const places = searches.map((keywords) => {
    const place = shop.search(keywords, maxResults).indexOf(product);
    return place < 0 ? Number.POSITIVE_INFINITY : place;
  });
  return searches[places.indexOf(Math.min(...places))]!;
}

function onResults(page: ResultsPage, { product }: Goal, rules: PageRules): string {
  if (productsOn(page, rules).includes(product)) return product.id.toLowerCase();
  const place = page.found.indexOf(product);
  if (place < 0) return Button.backToSearch;
  return place < page.number * rules.resultsPerPage ? Button.previous : Button.next;
}

function onItem({ product, chosen }: ItemPage, goal: Goal): string {
  if (product !== goal.product) return Button.previous;
  return goal.options.find(({ name, value }) => chosen.get(name) !== value)?.value ?? Button.buyNow;
}
