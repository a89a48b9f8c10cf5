import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { ChatRenderer, makeTokenizer, wordTokenizerFiles } from "@hone/tokenizer";
import { readShopAction } from "../actions.ts";
import type { Product } from "../catalogue/product.ts";
import type { Goal } from "../goal.ts";
import { type Page, type PageRules, pageAfter, SEARCH_PAGE } from "../pages.ts";
import { Shop } from "../shop.ts";
import { WebShop, webshopConfigSchema } from "../webshop.ts";
import { compactLayout, compactVocabulary } from "./compact-layout.ts";
import type { Layout } from "./layout.ts";
import { webshopLayout } from "./webshop-layout.ts";

const lamp: Product = {
  id: "B0LAMP0001",
  title: "Norvale Table Lamp, Easy Clean",
  nouns: ["table", "lamp"],
  category: ["Home", "Lighting", "table lamps"],
  query: "table lamps",
  price: [39.5, 39.5],
  attributes: ["easy clean", "child safe"],
  options: [{ name: "color", values: ["teal", "black"] }],
  description: "A good companion.",
  features: ["Easy clean", "Child safe"],
  reviews: [
    { title: "Love it", score: 5, body: "Every day." },
    { title: "Good", score: 4, body: "Late." },
  ],
};
const other: Product = {
  ...lamp,
  id: "B0LAMP0002",
  title: "Hallia Table Lamp",
  price: [20, 31],
  options: [],
  reviews: [],
};
const goal: Goal = {
  instruction: "Find me child safe table lamps",
  product: lamp,
  attributes: ["child safe"],
  options: [{ name: "color", value: "teal" }],
  priceLimit: 40,
};

function written(layout: Layout, actions: readonly string[], rules: PageRules): string {
  const shop = new Shop([lamp, other]);
  const page = actions.reduce<Page>(
    (before, action) => pageAfter(before, readShopAction(action)!, shop, rules),
    SEARCH_PAGE,
  );
  return layout.write(page, goal, rules);
}

describe("the layout webshop", () => {
  const rules: PageRules = {
    resultsPerPage: 1,
    maxResults: 50,
    details: ["description", "features", "reviews", "attributes"],
  };
  const TASK = "Instruction: [SEP] Find me child safe table lamps";
  const item = ["search[lamp]", "click[next >]", "click[< prev]", "click[b0lamp0002]"];
  const toLamp = ["search[safe easy norvale]", "click[b0lamp0001]"];

  for (const [actions, texts, available] of [
    [[], `WebShop [SEP] ${TASK} [SEP] Search`, "search[<content>]"],
    [
      ["search[lamp]"],
      `${TASK} [SEP] Back to Search [SEP] Page 1 (Total results: 2) [SEP] Next > [SEP] B0LAMP0002 [SEP] Hallia Table Lamp [SEP] $20.00 to $31.00`,
      "click[back to search], click[next >], click[b0lamp0002]",
    ],
    [
      ["search[lamp]", "click[next >]"],
      `${TASK} [SEP] Back to Search [SEP] Page 2 (Total results: 2) [SEP] < Prev [SEP] B0LAMP0001 [SEP] Norvale Table Lamp, Easy Clean [SEP] $39.50`,
      "click[back to search], click[< prev], click[b0lamp0001]",
    ],
    [
      toLamp,
      `${TASK} [SEP] Back to Search [SEP] < Prev [SEP] color [SEP] teal [SEP] black [SEP] Norvale Table Lamp, Easy Clean [SEP] Price: $39.50 [SEP] Rating: 4.5 [SEP] Description [SEP] Features [SEP] Reviews [SEP] Attributes [SEP] Buy Now`,
      "click[back to search], click[< prev], click[description], click[features], click[reviews], click[attributes], click[buy now], click[teal], click[black]",
    ],
    [
      item,
      `${TASK} [SEP] Back to Search [SEP] < Prev [SEP] Hallia Table Lamp [SEP] Price: $20.00 to $31.00 [SEP] Rating: N.A. [SEP] Description [SEP] Features [SEP] Reviews [SEP] Attributes [SEP] Buy Now`,
      "click[back to search], click[< prev], click[description], click[features], click[reviews], click[attributes], click[buy now]",
    ],
    [
      [...toLamp, "click[reviews]"],
      `${TASK} [SEP] Back to Search [SEP] < Prev [SEP] "Love it" [SEP] 5 [SEP] Every day. [SEP] "Good" [SEP] 4 [SEP] Late.`,
      "click[back to search], click[< prev]",
    ],
    [
      [...toLamp, "click[description]"],
      `${TASK} [SEP] Back to Search [SEP] < Prev [SEP] A good companion.`,
      "click[back to search], click[< prev]",
    ],
    [
      [...toLamp, "click[features]"],
      `${TASK} [SEP] Back to Search [SEP] < Prev [SEP] Easy clean [SEP] Child safe`,
      "click[back to search], click[< prev]",
    ],
    [
      [...toLamp, "click[attributes]"],
      `${TASK} [SEP] Back to Search [SEP] < Prev [SEP] easy clean [SEP] child safe [SEP] table lamps [SEP] Home › Lighting › table lamps`,
      "click[back to search], click[< prev]",
    ],
    [
      [...toLamp, "click[buy now]"],
      "Thank you for shopping with us! [SEP] Your score (min 0.0, max 1.0) [SEP] 0.6666666666666666",
      "",
    ],
  ] as const) {
    test(`writes the page after ${JSON.stringify(actions)}`, () => {
      assert.equal(written(webshopLayout, actions, rules), `${texts}\nAvailable actions: ${available}`);
    });
  }

  test("tasks hold what the reward asks for, and a limit of ten dollars' steps above the price", () => {
    const products = webshopLayout.makeProducts(0, 300);
    for (const [seed, product] of products.entries()) {
      const made = webshopLayout.makeGoal(product, new Random(seed));
      const { instruction, attributes, options, priceLimit } = made;
      for (const text of [product.query, ...attributes]) assert.ok(instruction.includes(text));
      for (const { name, value } of options) assert.ok(instruction.includes(`${name}: ${value}`));
      assert.ok(instruction.endsWith(`, and price lower than ${priceLimit}.00 dollars`));
      assert.equal(options.length, product.options.length);
      assert.ok(attributes.length >= 1 && attributes.length <= 3);
      assert.ok(attributes.every((attribute) => product.attributes.includes(attribute)));
      assert.equal(priceLimit % 10, 0);
      assert.ok(priceLimit > product.price[1] + 10 - 0.001 && priceLimit <= product.price[1] + 40);
      for (const words of webshopLayout.searchesFor(made)) {
        assert.ok(
          words.split(" ").every((word) => instruction.includes(word)),
          "a search uses the task's words",
        );
      }
    }
  });
});

describe("the layout compact", () => {
  const small: Product = {
    ...lamp,
    id: "p01",
    title: "soft round lamp",
    price: [15, 15],
    options: [
      { name: "color", values: ["red", "blue"] },
      { name: "size", values: ["small", "large"] },
    ],
  };
  const rules: PageRules = { resultsPerPage: 1, maxResults: 50, details: [] };
  const task = { ...goal, instruction: "soft lamp red large max 20" };
  const shop = new Shop([small, { ...small, id: "p02" }]);
  const shown = (...actions: readonly string[]) => {
    const page = actions.reduce<Page>(
      (before, action) => pageAfter(before, readShopAction(action)!, shop, rules),
      SEARCH_PAGE,
    );
    return compactLayout.write(page, task, rules).split("\n");
  };

  test("each page begins with the task", () => {
    assert.deepEqual(shown(), ["soft lamp red large max 20", "search"]);
    assert.deepEqual(shown("search[lamp]").slice(1), ["results next >", "p01 soft round lamp 15"]);
    assert.deepEqual(shown("search[lamp]", "click[next >]").slice(1), [
      "results < prev",
      "p02 soft round lamp 15",
    ]);
    assert.deepEqual(shown("search[lamp]", "click[p01]", "click[red]").slice(1), [
      "item",
      "p01 soft round lamp 15",
      "color red blue",
      "size small large",
      "chosen red",
    ]);
    assert.equal(shown("search[lamp]", "click[p01]", "click[buy now]").at(-1), "done");
  });

  for (const products of [20, 80]) {
    test(`of ${products} products has a vocabulary of at most 150 words, and observations of at most 60 tokens`, () => {
      const words = compactVocabulary(products);
      const files = wordTokenizerFiles({ roles: ["user", "assistant"], words, characters: [" ", "\n"] });
      const tokenizer = makeTokenizer(files, "compact");
      assert.ok(tokenizer.vocabSize <= 150, `${tokenizer.vocabSize}`);
      const renderer = new ChatRenderer(tokenizer);
      const unknown = tokenizer.tokenId("<|unk|>")!;
      const shopper = new WebShop(
        webshopConfigSchema.parse({ layout: "compact", products, showAttributes: true }),
      );
      let longest = 0;
      for (let seed = 0; seed < 200; seed++) {
        const random = new Random(seed);
        let { observation } = shopper.reset(seed);
        for (let isOver = false; !isOver; ) {
          const action = random.pick(shopper.legalActions());
          const { tokenIds } = renderer.render([
            { role: "user", content: observation },
            { role: "assistant", content: `<answer>${action}</answer>` },
          ]);
          assert.ok(![...tokenIds].includes(unknown), `${observation}\n${action}`);
          longest = Math.max(longest, tokenizer.encode(observation).length);
          const step = shopper.step(action);
          observation = step.observation;
          isOver = step.terminated || step.truncated;
        }
      }
      assert.ok(longest <= 60, `${longest}`);
    });
  }
});
