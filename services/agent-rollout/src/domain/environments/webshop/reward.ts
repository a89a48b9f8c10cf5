/**
 * The reward of a purchase by WebShop's formula (Yao et al. 2022, "WebShop: Towards Scalable Real-World Web Interaction with
 * Grounded Language Agents"):
 *
 *     reward = type · (attributes that match + options that match + 1 if the price does) / (attributes + options + 1)
 *
 * where attributes and options are those of the goal, and `type` says how near the kind of the product is.
 */

import type { Product } from "./catalogue/product.ts";
import type { Goal } from "./goal.ts";
import { tokenSetRatio } from "./token-set-ratio.ts";

/** What was bought. */
export interface Purchase {
  readonly product: Product;
  /** Values by the names of their groups. */
  readonly chosen: ReadonlyMap<string, string>;
}

export interface PurchaseScore {
  /** From 0 to 1; 1 = all that was wanted. */
  readonly reward: number;
  readonly type: TypeScore;
  /** Numbers of the goal's attributes and options that match. */
  readonly attributes: number;
  readonly options: number;
  readonly isPriceRight: boolean;
}

/** 1: the right kind; 0.5: another kind with few words in common; 0.1: hardly a word in common; 0: none. */
export type TypeScore = 0 | 0.1 | 0.5 | 1;

/** Texts match above this token set ratio. */
const LEAST_RATIO = 85;
/** Shares of the goal's nouns. */
const SAME_KIND = 0.2;
const NEAR_KIND = 0.1;
/** Categories that two paths have in common at the least if they are of one kind. */
const SAME_CATEGORIES = 2;

export function scorePurchase({ product, chosen }: Purchase, goal: Goal): PurchaseScore {
  const type = typeScore(product, goal.product);
  const values = [...chosen.values()];
  const attributes = goal.attributes.filter((wanted) => hasAttribute(product, wanted)).length;
  const options = goal.options.filter(({ value }) => values.some((each) => matches(each, value))).length;
  const isPriceRight = product.price[1] <= goal.priceLimit;
  const most = goal.attributes.length + goal.options.length + 1;
  return {
    reward: (type * (attributes + options + (isPriceRight ? 1 : 0))) / most,
    type,
    attributes,
    options,
    isPriceRight,
  };
}

type Sorted = Pick<Product, "query" | "category" | "nouns">;

export function typeScore(bought: Sorted, wanted: Sorted): TypeScore {
  const nouns = [...new Set(wanted.nouns)];
  const share = nouns.length === 0 ? SAME_KIND : numCommon(nouns, bought.nouns) / nouns.length;
  if (share === 0) return 0;
  if (share < NEAR_KIND) return 0.1;
  const categories = numCommon([...new Set(wanted.category)], bought.category);
  const isSameKind = bought.query === wanted.query || categories >= SAME_CATEGORIES || share > SAME_KIND;
  return isSameKind ? 1 : 0.5;
}

function numCommon(items: readonly string[], others: readonly string[]): number {
  return items.filter((item) => others.includes(item)).length;
}

/** Among its attributes, or word for word in its texts. */
function hasAttribute({ attributes, title, features, description }: Product, wanted: string): boolean {
  if (attributes.some((attribute) => matches(attribute, wanted))) return true;
  return [title, ...features, description].some((text) => text.toLowerCase().includes(wanted));
}

function matches(a: string, b: string): boolean {
  return tokenSetRatio(a, b) > LEAST_RATIO;
}
