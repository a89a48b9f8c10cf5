/**
 * Short pages in few words, for small models that are trained from scratch. Each page shows the task and what was chosen, so
 * that a model without memory can play. What can be clicked on every page of a kind is not written down.
 *
 * An observation has at most 60 tokens, with four products on a page, if each word, each blank and each end of line is one; see
 * {@link compactVocabulary}.
 */

import {
  COMPACT_ATTRIBUTES,
  COMPACT_KINDS,
  COMPACT_OPTIONS,
  COMPACT_PRICE_STEP,
  COMPACT_PRICES,
  compactId,
  MAX_COMPACT_PRODUCTS,
  makeCompactProducts,
} from "../catalogue/compact-products.ts";
import type { Product } from "../catalogue/product.ts";
import type { Goal } from "../goal.ts";
import { Button, linksOf, type Page, type PageRules, productsOn } from "../pages.ts";
import type { Layout } from "./layout.ts";

export const compactLayout: Layout = {
  defaultProducts: 20,
  maxProducts: MAX_COMPACT_PRODUCTS,
  defaultResultsPerPage: 4,
  // Titles say all there is to know.
  details: [],
  makeProducts: makeCompactProducts,
  makeGoal(product, random): Goal {
    const attributes = [random.pick(product.attributes)];
    const options = product.options.map(({ name, values }) => ({ name, value: random.pick(values) }));
    const priceLimit = product.price[1] + random.nextInt(MAX_LIMIT_STEPS + 1) * COMPACT_PRICE_STEP;
    const values = options.map(({ value }) => value);
    const instruction = [...attributes, product.query, ...values, "max", priceLimit].join(" ");
    return { product, attributes, options, priceLimit, instruction };
  },
  searchesFor: () => COMPACT_KINDS,
  write(page, goal, rules) {
    return [goal.instruction, ...linesOf(page, rules)].join("\n");
  },
};

/** Steps between a product's price and the limit. */
const MAX_LIMIT_STEPS = 2;

function linesOf(page: Page, rules: PageRules): string[] {
  switch (page.kind) {
    case "search":
    case "done":
      return [page.kind];
    case "results": {
      const turns = linksOf(page, rules).filter(
        ({ name }) => name === Button.previous || name === Button.next,
      );
      return [
        ["results", ...turns.map(({ name }) => name)].join(" "),
        ...productsOn(page, rules).map(lineOf),
      ];
    }
    case "item": {
      const { product, chosen } = page;
      const options = product.options.map(({ name, values }) => [name, ...values].join(" "));
      return ["item", lineOf(product), ...options, ["chosen", ...chosen.values()].join(" ")];
    }
    case "detail":
      return [page.detail, page.item.product.attributes.join(" ")];
    default:
      return page satisfies never;
  }
}

function lineOf({ id, title, price }: Product): string {
  return `${id} ${title} ${price[1]}`;
}

/**
 * All words of the pages and of actions in answers, for `wordTokenizerFiles` of `@hone/tokenizer`; the characters are the blank
 * and the end of a line.
 * @param products number of the shop's products.
 */
export function compactVocabulary(products: number = compactLayout.defaultProducts): string[] {
  return [
    ...["<answer>", "</answer>", "search[", "click[", "]"],
    ...["search", "results", "item", "chosen", "done", "max"],
    ...Object.values(Button),
    "attributes",
    ...COMPACT_KINDS,
    ...COMPACT_ATTRIBUTES,
    ...COMPACT_OPTIONS.flatMap(({ name, values }) => [name, ...values]),
    ...COMPACT_PRICES.map(String),
    ...Array.from({ length: products }, (_, number) => compactId(number)),
  ];
}
