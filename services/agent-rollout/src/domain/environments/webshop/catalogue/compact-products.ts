/**
 * The products of the compact layout, for models that are trained from scratch: a closed list of words, each of them a token,
 * and titles that say all there is to know.
 */

import { deriveSeed, Random } from "@hone/core";
import type { Product } from "./product.ts";

/** Also the searches that random play makes. */
export const COMPACT_KINDS = ["mug", "lamp", "shirt", "bag", "chair"] as const;
export const COMPACT_ATTRIBUTES = ["soft", "warm", "round", "thin", "plain", "heavy"] as const;
export const COMPACT_OPTIONS = [
  { name: "color", values: ["red", "blue", "green"] },
  { name: "size", values: ["small", "large"] },
] as const;
/** Whole dollars, as multiples of this. */
export const COMPACT_PRICE_STEP = 5;
const MAX_PRICE_STEPS = 6;
/** Prices go up to 30 dollars, and limits to two steps more. */
export const COMPACT_PRICES: readonly number[] = Array.from(
  { length: MAX_PRICE_STEPS + 2 },
  (_, index) => (index + 1) * COMPACT_PRICE_STEP,
);
/** An id has two digits. */
export const MAX_COMPACT_PRODUCTS = 99;
/** Chance of a product to come in sizes. */
const SIZES = 0.5;

/** The kinds take turns. */
export function makeCompactProducts(shopSeed: number, count: number): Product[] {
  return Array.from({ length: count }, (_, number) => {
    const random = new Random(deriveSeed(shopSeed, "webshop", "compact product", number));
    const kind = COMPACT_KINDS[number % COMPACT_KINDS.length]!;
    const first = random.nextInt(COMPACT_ATTRIBUTES.length);
    const second = (first + 1 + random.nextInt(COMPACT_ATTRIBUTES.length - 1)) % COMPACT_ATTRIBUTES.length;
    const attributes = [COMPACT_ATTRIBUTES[first]!, COMPACT_ATTRIBUTES[second]!];
    const price = COMPACT_PRICES[random.nextInt(MAX_PRICE_STEPS)]!;
    const [color, size] = COMPACT_OPTIONS;
    return {
      id: compactId(number),
      title: [...attributes, kind].join(" "),
      nouns: [kind],
      category: ["shop", kind],
      query: kind,
      price: [price, price],
      attributes,
      options: random.next() < SIZES ? [color, size] : [color],
      description: "",
      features: [],
      reviews: [],
    };
  });
}

export function compactId(number: number): string {
  return `p${String(number + 1).padStart(2, "0")}`;
}
