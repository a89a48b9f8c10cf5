/** How a shop looks: which products it has, how tasks are worded, and how pages are written. The rules are the same in all. */

import type { Random } from "@hone/core";
import type { Product } from "../catalogue/product.ts";
import type { Goal } from "../goal.ts";
import type { Detail, Page, PageRules } from "../pages.ts";

export interface Layout {
  /** Where the configuration does not say it. */
  readonly defaultProducts: number;
  readonly maxProducts: number;
  readonly defaultResultsPerPage: number;
  /** The details that each item has; the configuration may add its attributes. */
  readonly details: readonly Detail[];
  makeProducts(shopSeed: number, count: number): readonly Product[];
  /** A task that the product fulfils. */
  makeGoal(product: Product, random: Random): Goal;
  /** Searches that make sense, for scripted policies. */
  searchesFor(goal: Goal): readonly string[];
  /** A page as the model is shown it. */
  write(page: Page, goal: Goal, rules: PageRules): string;
}
