/**
 * A shop: its products and the index that finds them. Shops never change, so all episodes of a process with the same
 * configuration share one; it is made when the first of them starts.
 */

import { SearchIndex } from "@hone/agents";
import type { Product } from "./catalogue/product.ts";

export class Shop {
  readonly products: readonly Product[];
  readonly #index: SearchIndex<Entry>;
  /** The last searches and what they found: the rollouts of a group have the same task, and search alike. */
  readonly #searches = new Map<string, readonly Product[]>();

  constructor(products: readonly Product[]) {
    this.products = products;
    this.#index = new SearchIndex(products.map(entryOf));
  }

  /** The products that fit best, best first. */
  search(keywords: string, maxResults: number): readonly Product[] {
    const key = `${maxResults} ${keywords.toLowerCase()}`;
    const known = this.#searches.get(key);
    if (known !== undefined) return known;
    const found = this.#index.search(keywords, maxResults).map(({ product }) => product);
    this.#searches.set(key, found);
    dropOldest(this.#searches, MAX_SEARCHES);
    return found;
  }
}

/** About a megabyte if each found as much as it could. */
const MAX_SEARCHES = 2_000;

/** A map keeps the order of insertion, so the first entry is the oldest. */
function dropOldest(map: Map<string, unknown>, most: number): void {
  const [oldest] = map.keys();
  if (map.size > most && oldest !== undefined) map.delete(oldest);
}

interface Entry {
  readonly title: string;
  readonly text: string;
  readonly product: Product;
}

/** What is searched: the same texts as in WebShop, and the names of the options. */
function entryOf(product: Product): Entry {
  const { title, query, description, features, options } = product;
  const values = options.flatMap((group) => group.values);
  return { title, text: [query, description, ...features, ...values].join(" "), product };
}

/** The shops that were used last, by their names. A process that serves several runs may need a few. */
const shops = new Map<string, Shop>();
const MAX_SHOPS = 4;

/**
 * The shop of this name.
 * @param makeProducts is asked only if there is no such shop yet; a name always stands for the same products.
 */
export function shopNamed(name: string, makeProducts: () => readonly Product[]): Shop {
  const shop = shops.get(name) ?? new Shop(makeProducts());
  // Inserted again, so that the oldest entry is the shop that was used longest ago.
  shops.delete(name);
  shops.set(name, shop);
  dropOldest(shops, MAX_SHOPS);
  return shop;
}
