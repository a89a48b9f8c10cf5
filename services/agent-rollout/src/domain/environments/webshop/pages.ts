/**
 * The pages of a shop and the ways between them, by WebShop's rules. A page never changes: an action leads to another page, or
 * to the same one if it has no effect.
 *
 *     search ──> results ──> item ──> description, features, reviews, attributes
 *       ^           │         │└─────> done
 *       └───────────┴─────────┴── "back to search" leads here from everywhere
 *
 * P1: on the search page one can only search, and nowhere else.
 * P2: the item's chosen options stay as one looks at its details, and are lost as one goes back to the results.
 */

import type { ShopAction } from "./actions.ts";
import type { Product } from "./catalogue/product.ts";
import type { Purchase } from "./reward.ts";
import type { Shop } from "./shop.ts";

/** Pages with more about an item. */
export const DETAILS = ["description", "features", "reviews", "attributes"] as const;
export type Detail = (typeof DETAILS)[number];

export type Page = SearchPage | ResultsPage | ItemPage | DetailPage | DonePage;

export interface SearchPage {
  readonly kind: "search";
}

export interface ResultsPage {
  readonly kind: "results";
  /** All that was found, best first. */
  readonly found: readonly Product[];
  /** Number of the page, from 1. */
  readonly number: number;
}

export interface ItemPage extends Purchase {
  readonly kind: "item";
  readonly results: ResultsPage;
}

export interface DetailPage {
  readonly kind: "detail";
  readonly detail: Detail;
  readonly item: ItemPage;
}

export interface DonePage {
  readonly kind: "done";
  readonly item: ItemPage;
}

/** What the configuration says on pages. */
export interface PageRules {
  readonly resultsPerPage: number;
  /** Most products that a search finds. */
  readonly maxResults: number;
  /** The details that an item has. */
  readonly details: readonly Detail[];
}

/** Something to click. */
export interface Link {
  /** In lower case. */
  readonly name: string;
  readonly to: Page;
}

export const Button = {
  backToSearch: "back to search",
  previous: "< prev",
  next: "next >",
  buyNow: "buy now",
} as const;

export const SEARCH_PAGE: SearchPage = { kind: "search" };

/** The page that an action leads to; the page itself if the action is not available. */
export function pageAfter(page: Page, action: ShopAction, shop: Shop, rules: PageRules): Page {
  if (action.kind === "click") {
    return linksOf(page, rules).find(({ name }) => name === action.value)?.to ?? page;
  }
  if (page.kind !== "search") return page; // P1
  return { kind: "results", found: shop.search(action.keywords, rules.maxResults), number: 1 };
}

/** What can be clicked on a page, in WebShop's order: buttons first, then products or options. */
export function linksOf(page: Page, rules: PageRules): Link[] {
  switch (page.kind) {
    case "search":
    case "done":
      return [];
    case "results":
      return [BACK_TO_SEARCH, ...turnsOf(page, rules), ...productsOn(page, rules).map(linkTo(page))];
    case "item":
      return [
        BACK_TO_SEARCH,
        { name: Button.previous, to: page.results }, // P2
        ...rules.details.map((detail) => ({
          name: detail,
          to: { kind: "detail", detail, item: page } as const,
        })),
        { name: Button.buyNow, to: { kind: "done", item: page } },
        ...page.product.options.flatMap(({ name, values }) =>
          values.map((value) => ({ name: value, to: withChosen(page, name, value) })),
        ),
      ];
    case "detail":
      return [BACK_TO_SEARCH, { name: Button.previous, to: page.item }];
    default:
      return page satisfies never;
  }
}

const BACK_TO_SEARCH: Link = { name: Button.backToSearch, to: SEARCH_PAGE };

function turnsOf(page: ResultsPage, { resultsPerPage }: PageRules): Link[] {
  const { found, number } = page;
  const links: Link[] = [];
  if (number > 1) links.push({ name: Button.previous, to: { ...page, number: number - 1 } });
  if (number * resultsPerPage < found.length) {
    links.push({ name: Button.next, to: { ...page, number: number + 1 } });
  }
  return links;
}

/** The part of what was found that a page of results shows. */
export function productsOn(
  { found, number }: ResultsPage,
  { resultsPerPage }: PageRules,
): readonly Product[] {
  return found.slice((number - 1) * resultsPerPage, number * resultsPerPage);
}

function linkTo(results: ResultsPage) {
  return (product: Product): Link => ({
    name: product.id.toLowerCase(),
    to: { kind: "item", product, chosen: new Map(), results },
  });
}

function withChosen(page: ItemPage, group: string, value: string): ItemPage {
  if (page.chosen.get(group) === value) return page;
  return { ...page, chosen: new Map(page.chosen).set(group, value) };
}
