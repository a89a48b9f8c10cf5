/** What a shopper is asked to buy. */

import type { Product } from "./catalogue/product.ts";

export interface Goal {
  /** The task in words. */
  readonly instruction: string;
  /** The product from which the goal was made. Others may do as well. */
  readonly product: Product;
  /** Never empty. */
  readonly attributes: readonly string[];
  readonly options: readonly { readonly name: string; readonly value: string }[];
  /** The highest price in dollars. */
  readonly priceLimit: number;
}
