/**
 * The layout of WebShop as ROLL shows it: the texts of a page in their order, joined by ` [SEP] `, and below them the actions
 * that are available. Buttons and labels have WebShop's words.
 */

import { clickAction } from "../actions.ts";
import { makeProducts } from "../catalogue/make-products.ts";
import type { Product } from "../catalogue/product.ts";
import type { Goal } from "../goal.ts";
import {
  type DetailPage,
  type ItemPage,
  linksOf,
  type Page,
  type PageRules,
  productsOn,
  type ResultsPage,
} from "../pages.ts";
import { scorePurchase } from "../reward.ts";
import type { Layout } from "./layout.ts";
import { makeWebshopGoal } from "./webshop-goals.ts";

const SEPARATOR = " [SEP] ";

export const webshopLayout: Layout = {
  defaultProducts: 1_000,
  // A search among so many takes about 10 ms, and products and index 55 MB.
  maxProducts: 10_000,
  defaultResultsPerPage: 10,
  details: ["description", "features", "reviews"],
  makeProducts,
  makeGoal: makeWebshopGoal,
  searchesFor: ({ product: { query }, attributes, instruction }) => [
    query,
    [...attributes, query].join(" "),
    instruction,
  ],
  write(page, goal, rules) {
    return `${textsOf(page, goal, rules).join(SEPARATOR)}\nAvailable actions: ${actionsOn(page, rules).join(", ")}`;
  },
};

function actionsOn(page: Page, rules: PageRules): string[] {
  if (page.kind === "search") return ["search[<content>]"];
  return linksOf(page, rules).map(({ name }) => clickAction(name));
}

function textsOf(page: Page, goal: Goal, rules: PageRules): string[] {
  const task = ["Instruction:", goal.instruction];
  switch (page.kind) {
    case "search":
      return ["WebShop", ...task, "Search"];
    case "results":
      return [...task, "Back to Search", ...resultsTexts(page, rules)];
    case "item":
      return [...task, "Back to Search", "< Prev", ...itemTexts(page, rules)];
    case "detail":
      return [...task, "Back to Search", "< Prev", ...detailTexts(page)];
    case "done": {
      const { reward } = scorePurchase(page.item, goal);
      return ["Thank you for shopping with us!", "Your score (min 0.0, max 1.0)", String(reward)];
    }
    default:
      return page satisfies never;
  }
}

function resultsTexts(page: ResultsPage, rules: PageRules): string[] {
  const turns = linksOf(page, rules).map(({ name }) => TURNS.get(name) ?? "");
  return [
    `Page ${page.number} (Total results: ${page.found.length})`,
    ...turns.filter((text) => text !== ""),
    ...productsOn(page, rules).flatMap((product) => [product.id, product.title, priceOf(product)]),
  ];
}

/** The buttons that turn a page of results, as they are shown. */
const TURNS = new Map([
  ["< prev", "< Prev"],
  ["next >", "Next >"],
]);

function itemTexts({ product }: ItemPage, { details }: PageRules): string[] {
  return [
    ...product.options.flatMap(({ name, values }) => [name, ...values]),
    product.title,
    `Price: ${priceOf(product)}`,
    `Rating: ${ratingOf(product)}`,
    ...details.map((detail) => detail.charAt(0).toUpperCase() + detail.slice(1)),
    "Buy Now",
  ];
}

function detailTexts({ detail, item: { product } }: DetailPage): readonly string[] {
  switch (detail) {
    case "description":
      return [product.description];
    case "features":
      return product.features;
    case "reviews":
      return product.reviews.flatMap(({ title, score, body }) => [`"${title}"`, String(score), body]);
    case "attributes":
      return [...product.attributes, product.query, product.category.join(" › ")];
    default:
      return detail satisfies never;
  }
}

function priceOf({ price: [lowest, highest] }: Product): string {
  const from = `$${lowest.toFixed(2)}`;
  return lowest === highest ? from : `${from} to $${highest.toFixed(2)}`;
}

/** The mean of the stars. */
function ratingOf({ reviews }: Product): string {
  if (reviews.length === 0) return "N.A.";
  return (reviews.reduce((sum, { score }) => sum + score, 0) / reviews.length).toFixed(1);
}
