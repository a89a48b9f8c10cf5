/**
 * Shopping by WebShop's rules, as ROLL plays it: find a product that has what the instruction asks for, choose its options, and
 * buy it.
 *
 * W1: the actions are `search[keywords]` and `click[value]`; which of them are available depends on the page (pages.ts).
 * W2: an action that is not available changes nothing and gives 0. An answer without any text of an action gives the format
 *     penalty. Both count as steps.
 * W3: buying ends the episode with the reward of reward.ts, from 0 to 1; every other step gives 0.
 * W4: after `maxSteps` steps the episode is truncated.
 * W5: the task follows from the seed and the configuration alone.
 * W6: metrics: success (all that was wanted was bought), purchased, action_is_valid (an action was found in the answer) and
 *     action_is_effective (it changed the page), the last two as means over the steps.
 */

import type {
  ActionFormat,
  Environment,
  EnvironmentDescription,
  EnvironmentInfo,
  EnvironmentReset,
  EnvironmentStep,
} from "@hone/agents";
import { deriveSeed, Random } from "@hone/core";
import { TurnInfo } from "@hone/rl";
import { z } from "zod";
import { runningEpisode } from "../running-episode.ts";
import { StepTally } from "../step-tally.ts";
import { clickAction, readShopAction, type ShopAction, searchAction } from "./actions.ts";
import { describeShop, LAYOUT_NAMES, type LayoutName } from "./description.ts";
import type { Goal } from "./goal.ts";
import { compactLayout } from "./layouts/compact-layout.ts";
import type { Layout } from "./layouts/layout.ts";
import { webshopLayout } from "./layouts/webshop-layout.ts";
import { type ItemPage, linksOf, type Page, type PageRules, pageAfter, SEARCH_PAGE } from "./pages.ts";
import { type PurchaseScore, scorePurchase } from "./reward.ts";
import { type Shop, shopNamed } from "./shop.ts";
import { solvingAction } from "./solver.ts";

const LAYOUTS: Readonly<Record<LayoutName, Layout>> = { webshop: webshopLayout, compact: compactLayout };

export const webshopConfigSchema = z
  .strictObject({
    /** `webshop`: WebShop's pages; `compact`: short pages in few words, for models that are trained from scratch. */
    layout: z.enum(LAYOUT_NAMES).default("webshop"),
    /** Number of products in the shop. @default 1000, or 20 in the compact layout */
    products: z.number().int().min(1).optional(),
    /** Other seeds give shops with other products, for example to test on products that were never trained on. */
    shopSeed: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER).default(0),
    /** Products on a page of results. @default 10, or 4 in the compact layout */
    resultsPerPage: z.number().int().min(1).max(100).optional(),
    /** Most products that a search finds. */
    maxResults: z.number().int().min(1).max(1_000).default(50),
    /** Whether an item has a page that lists its attributes. */
    showAttributes: z.boolean().default(false),
    /** Number of steps after which the episode is truncated (W4). */
    maxSteps: z.number().int().min(1).max(10_000).default(10),
    /** Reward of a step whose answer holds no action (W2). */
    formatPenalty: z.number().max(0).default(0),
  })
  .superRefine(({ layout, products }, context) => {
    const { maxProducts } = LAYOUTS[layout];
    if (products === undefined || products <= maxProducts) return;
    context.addIssue({
      code: "custom",
      path: ["products"],
      message: `must be at most ${maxProducts} in the layout ${layout}, but is ${products}`,
    });
  });
export type WebshopConfig = z.output<typeof webshopConfigSchema>;

interface Episode {
  readonly shop: Shop;
  readonly goal: Goal;
  readonly tally: StepTally;
  page: Page;
  isTruncated: boolean;
}

export class WebShop implements Environment {
  readonly #config: WebshopConfig;
  readonly #layout: Layout;
  readonly #rules: PageRules;
  #episode: Episode | undefined;

  constructor(config: WebshopConfig) {
    this.#config = config;
    this.#layout = LAYOUTS[config.layout];
    const { details, defaultResultsPerPage } = this.#layout;
    this.#rules = {
      resultsPerPage: config.resultsPerPage ?? defaultResultsPerPage,
      maxResults: config.maxResults,
      details: config.showAttributes ? [...details, "attributes"] : details,
    };
  }

  reset(seed: number): EnvironmentReset {
    const { layout, shopSeed, products = this.#layout.defaultProducts } = this.#config;
    const shop = shopNamed(`${layout} ${shopSeed} ${products}`, () =>
      this.#layout.makeProducts(shopSeed, products),
    );
    const random = new Random(deriveSeed(seed, "webshop", "goal")); // W5
    const goal = this.#layout.makeGoal(random.pick(shop.products), random);
    this.#episode = { shop, goal, tally: new StepTally(), page: SEARCH_PAGE, isTruncated: false };
    return { observation: this.#write(this.#episode), info: stateInfo(this.#episode) };
  }

  step(action: string): EnvironmentStep {
    const episode = this.#running();
    const { goal, shop, tally, page: before } = episode;
    const isValid = action.trim() !== "";
    const read = readShopAction(action);
    if (read !== undefined) episode.page = pageAfter(before, read, shop, this.#rules);
    const isEffective = episode.page !== before;
    tally.add({ isValid, isEffective });
    const score = episode.page.kind === "done" ? scorePurchase(episode.page.item, goal) : undefined;
    const terminated = score !== undefined;
    episode.isTruncated = !terminated && tally.steps >= this.#config.maxSteps; // W4
    return {
      observation: this.#write(episode),
      reward: score?.reward ?? (isValid ? 0 : this.#config.formatPenalty),
      terminated,
      truncated: episode.isTruncated,
      info: {
        ...stateInfo(episode),
        ...(score !== undefined && scoreInfo(score)),
        action: read === undefined ? null : textOf(read),
        action_is_valid: isValid,
        action_is_effective: isEffective,
        success: score?.reward === 1,
      },
    };
  }

  metrics(): Readonly<Record<string, number>> {
    if (this.#episode === undefined) return {};
    const { page, goal, tally } = this.#episode;
    const score = page.kind === "done" ? scorePurchase(page.item, goal) : undefined;
    return {
      success: score?.reward === 1 ? 1 : 0,
      purchased: score === undefined ? 0 : 1,
      ...tally.metrics(),
    };
  }

  describe(format?: ActionFormat): EnvironmentDescription {
    return describeShop(this.#config.layout, format);
  }

  /** Everything that can be clicked, or some searches that make sense: random play comes to purchases, mostly of wrong things. */
  legalActions(): readonly string[] {
    const { page, goal } = this.#running();
    if (page.kind === "search") return this.#layout.searchesFor(goal).map(searchAction);
    return linksOf(page, this.#rules).map(({ name }) => clickAction(name));
  }

  /** The next action of a shopper who knows the way to reward 1. */
  expertAction(): string {
    const { page, goal, shop } = this.#running();
    return solvingAction({ page, goal, shop, rules: this.#rules });
  }

  #write({ page, goal }: Episode): string {
    return this.#layout.write(page, goal, this.#rules);
  }

  #running(): Episode {
    return runningEpisode(
      this.#episode,
      ({ isTruncated, page }) => isTruncated || page.kind === "done",
      "the shop",
    );
  }
}

function stateInfo({ page, goal }: Episode): EnvironmentInfo {
  const shown = { instruction: goal.instruction, page: page.kind === "detail" ? page.detail : page.kind };
  const item = itemOf(page);
  if (item === undefined) return { ...shown, product: "", chosen: "" };
  const { product, chosen } = item;
  const choices = Array.from(chosen, ([name, value]) => `${name}: ${value}`)
    .sort()
    .join(", ");
  // WebShop's pages do not show what was chosen, so their text is not enough to name the state.
  return {
    ...shown,
    product: product.id,
    chosen: choices,
    [TurnInfo.state]: `${shown.page} ${product.id} ${choices}`,
  };
}

/** The item that a page is about. */
function itemOf(page: Page): ItemPage | undefined {
  switch (page.kind) {
    case "search":
    case "results":
      return undefined;
    case "item":
      return page;
    case "detail":
    case "done":
      return page.item;
    default:
      return page satisfies never;
  }
}

/** What the reward of a purchase is made of. */
function scoreInfo({ type, attributes, options, isPriceRight }: PurchaseScore): EnvironmentInfo {
  return {
    type_score: type,
    matched_attributes: attributes,
    matched_options: options,
    price_is_right: isPriceRight,
  };
}

function textOf(action: ShopAction): string {
  return action.kind === "search" ? searchAction(action.keywords) : clickAction(action.value);
}
