import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { agentOf, environmentOf } from "@hone/agents";
import { playAgent } from "@hone/agents/testing";
import { Random } from "@hone/core";
import "../../built-ins.ts";
import { WebShop, type WebshopConfig, webshopConfigSchema } from "./webshop.ts";

const shopWith = (config: Partial<WebshopConfig> = {}) => new WebShop(webshopConfigSchema.parse(config));

/** The actions that lead to reward 1. */
function solutionOf(config: Partial<WebshopConfig>, seed: number): string[] {
  const shop = shopWith({ ...config, maxSteps: 100 });
  shop.reset(seed);
  for (const actions: string[] = []; ; ) {
    const action = shop.expertAction();
    actions.push(action);
    if (shop.step(action).terminated) return actions;
  }
}

describe("WebShop", () => {
  for (const layout of ["webshop", "compact"] as const) {
    test(`a shopper who knows the way has reward 1 within ten steps, in the layout ${layout}`, () => {
      for (let seed = 0; seed < 200; seed++) {
        const actions = solutionOf({ layout }, seed);
        const shop = shopWith({ layout });
        shop.reset(seed);
        for (const action of actions.slice(0, -1)) {
          assert.ok(shop.legalActions().includes(action) || action.startsWith("search["), action);
          const { reward, terminated, truncated, info } = shop.step(action);
          assert.deepEqual([reward, terminated, truncated], [0, false, false]);
          assert.deepEqual([info.action_is_effective, info.success], [true, false]);
        }
        const last = shop.step(actions.at(-1)!);
        assert.deepEqual([last.reward, last.terminated, last.truncated], [1, true, false]);
        assert.equal(last.info.success, true);
        assert.deepEqual(shop.metrics(), {
          success: 1,
          purchased: 1,
          action_is_valid: 1,
          action_is_effective: 1,
        });
      }
    });

    test(`random legal actions come to purchases of every worth, in the layout ${layout}`, () => {
      const rewards: number[] = [];
      for (let seed = 0; seed < 600; seed++) {
        const shop = shopWith({ layout });
        shop.reset(seed);
        const random = new Random(seed);
        for (;;) {
          const { reward, terminated, truncated } = shop.step(random.pick(shop.legalActions()));
          if (terminated) rewards.push(reward);
          if (terminated || truncated) break;
        }
      }
      assert.ok(rewards.length > 120, `${rewards.length} purchases`);
      assert.ok(rewards.some((reward) => reward === 0) && rewards.some((reward) => reward > 0.7));
      assert.ok(rewards.every((reward) => reward >= 0 && reward <= 1));
      assert.ok(new Set(rewards).size > 4);
    });
  }

  test("tasks of smaller and larger shops can be solved within ten steps as well", () => {
    for (const config of [
      { products: 100 },
      { products: 3_000 },
      { layout: "compact", products: 99 },
    ] as const) {
      for (let seed = 0; seed < 20; seed++) {
        assert.ok(solutionOf(config, seed).length <= 10, `${JSON.stringify(config)} ${seed}`);
      }
    }
  });

  test("a seed always gives the same task, and other seeds or another shop give others", () => {
    const instructionOf = (seed: number, shopSeed = 0) => shopWith({ shopSeed }).reset(seed).info.instruction;
    assert.equal(instructionOf(5), instructionOf(5));
    // Changes only if the tasks do.
    assert.equal(
      instructionOf(0),
      "I am looking for throw pillows (stain resistant, hand woven) with color: navy, and style: rustic, and price lower than 80.00 dollars",
    );
    const tasks = new Set(Array.from({ length: 300 }, (_, seed) => instructionOf(seed)));
    assert.equal(tasks.size, 300);
    assert.notEqual(instructionOf(5, 1), instructionOf(5));
  });

  test("an episode does not touch another one in the same shop", () => {
    const [first, second] = [shopWith(), shopWith()];
    const start = first.reset(4);
    assert.deepEqual(second.reset(4), start);
    const actions = solutionOf({}, 4);
    for (const action of actions) first.step(action);
    const own = actions.map((action) => second.step(action));
    assert.equal(own.at(-1)!.reward, 1);
    assert.deepEqual(first.reset(4), start, "also after a reset");
  });

  test("something else than all that was wanted is worth less, and is no success", () => {
    const seed = 4;
    const actions = solutionOf({}, seed).filter(
      (action) => action.startsWith("search[") || action.startsWith("click[b0"),
    );
    const shop = shopWith();
    shop.reset(seed);
    for (const action of actions) shop.step(action);
    const { reward, terminated, info } = shop.step("click[Buy Now]");
    assert.ok(reward > 0 && reward < 1);
    assert.deepEqual([terminated, info.success, info.matched_options, info.type_score], [true, false, 0, 1]);
    assert.deepEqual([shop.metrics().success, shop.metrics().purchased], [0, 1]);
  });

  test("an empty answer gives the format penalty, and an action that is not available gives 0", () => {
    const shop = shopWith({ formatPenalty: -0.05 });
    const { observation } = shop.reset(1);
    const step = (action: string) => {
      const { reward, info, observation: shown } = shop.step(action);
      assert.equal(shown, observation);
      assert.equal(info.action_is_effective, false);
      return [reward, info.action_is_valid, info.action];
    };
    assert.deepEqual(step(""), [-0.05, false, null]);
    assert.deepEqual(step("I would buy it"), [0, true, null]);
    assert.deepEqual(step("click[buy now]"), [0, true, "click[buy now]"]);
    assert.deepEqual(shop.metrics(), {
      success: 0,
      purchased: 0,
      action_is_valid: 2 / 3,
      action_is_effective: 0,
    });
    const lenient = shopWith();
    lenient.reset(1);
    assert.equal(lenient.step("").reward, 0);
  });

  test("rubbish changes nothing, on no page", () => {
    const shop = shopWith({ maxSteps: 1_000 });
    shop.reset(2);
    for (const action of ["", ...solutionOf({}, 2).slice(0, -1)]) {
      const { observation } = shop.step(action);
      for (const rubbish of [
        "click[",
        "click]",
        "click[buy now",
        "click[__proto__]",
        "click[constructor]",
        "click[toString]",
        "click[search]",
        "click[undefined]",
        "click[buy\u0000now]",
        "\u0000\u001b[2J\uD800",
        "search[]",
        `search[${"[".repeat(100_000)}`,
        `click[${"x".repeat(1_000_000)}]`,
        `${"Action:".repeat(100_000)}`,
        "x".repeat(1_000_000),
      ]) {
        const step = shop.step(rubbish);
        assert.equal(step.observation, observation, rubbish.slice(0, 50));
        assert.deepEqual([step.reward, step.terminated, step.info.action_is_effective], [0, false, false]);
        assert.ok(String(step.info.action).length < 600);
      }
    }
  });

  test("a search for anything finds something or nothing, and is soon done", () => {
    for (const keywords of ["\u0000", "__proto__ constructor", "* OR NOT", "🦆", "a ".repeat(100_000), "]"]) {
      const shop = shopWith();
      shop.reset(2);
      const begin = performance.now();
      const { info } = shop.step(`search[${keywords}]`);
      assert.equal(info.page, "results");
      assert.ok(performance.now() - begin < 2_000);
    }
  });

  test("is truncated after the last allowed step, unless that step buys", () => {
    const actions = solutionOf({}, 3);
    const buys = shopWith({ maxSteps: actions.length });
    buys.reset(3);
    const last = actions.map((action) => buys.step(action)).at(-1)!;
    assert.deepEqual([last.terminated, last.truncated], [true, false]);
    const tooLate = shopWith({ maxSteps: actions.length - 1 });
    tooLate.reset(3);
    const cut = actions
      .slice(0, -1)
      .map((action) => tooLate.step(action))
      .at(-1)!;
    assert.deepEqual([cut.terminated, cut.truncated, cut.reward], [false, true, 0]);
    assert.equal(tooLate.metrics().success, 0);
  });

  test("refuses a step before a reset or after the end", () => {
    const shop = shopWith({ maxSteps: 1 });
    assert.throws(() => shop.step("search[a]"), /needs a reset before its first step/);
    shop.reset(1);
    shop.step("");
    assert.throws(() => shop.step("search[a]"), /the episode is over/);
    assert.throws(() => shop.legalActions(), /the episode is over/);
  });

  test("info says what was chosen, and names the states that WebShop's pages do not tell apart", () => {
    const shop = shopWith();
    shop.reset(4);
    const steps = solutionOf({}, 4)
      .slice(0, 3)
      .map((action) => shop.step(action));
    const [, item, chosen] = steps;
    assert.equal(item!.info.page, "item");
    assert.equal(item!.info.chosen, "");
    assert.match(String(chosen!.info.chosen), /^[a-z]+: [a-z ]+$/);
    assert.equal(chosen!.observation, item!.observation);
    assert.notEqual(chosen!.info.state, item!.info.state);
    for (const key of shop.describe().infoKeys!) assert.ok(Object.hasOwn(item!.info, key), key);
  });

  test("its configuration refuses unknown keys and numbers out of range", () => {
    for (const wrong of [
      { product: 3 },
      { products: 0 },
      { products: 10_001 },
      { layout: "compact", products: 100 },
      { resultsPerPage: 0 },
      { maxResults: 0 },
      { formatPenalty: 1 },
      { maxSteps: 0 },
      { shopSeed: -1 },
    ]) {
      assert.equal(webshopConfigSchema.safeParse(wrong).success, false, JSON.stringify(wrong));
    }
  });
});

describe("WebShop with the agent gym", () => {
  const definition = environmentOf("webshop")!;
  const gym = agentOf("gym")!;

  test("is played by answers in tags, with ROLL's instruction before the first page", async () => {
    const answers = solutionOf({}, 6).map((action) => `I think so. <answer>${action}</answer>`);
    const played = await playAgent(gym, { environment: { definition, seed: 6 }, answers });
    assert.equal(played.environmentReturn, 1);
    assert.deepEqual(played.result.metrics, { steps: answers.length, done: 1 });
    assert.equal(played.environmentMetrics.success, 1);
    const [first] = played.prompts;
    assert.ok(first!.includes("You are web shopping."));
    assert.ok(
      first!.includes("Action: click[something]\nTurn 1:\nObservation:\nWebShop [SEP] Instruction: [SEP] "),
    );
    assert.ok(first!.includes("\nAvailable actions: search[<content>]\n"));
  });

  test("is played by calls of its tools", async () => {
    const config = { actionFormat: "tool_call" };
    const call = (action: string) => {
      const [, name, argument] = /^(search|click)\[(.*)\]$/.exec(action)!;
      const args = name === "search" ? { keywords: argument } : { value: argument };
      return `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
    };
    const answers = solutionOf({}, 7).map(call);
    const played = await playAgent(gym, { environment: { definition, seed: 7 }, answers, config });
    assert.equal(played.environmentReturn, 1);
    assert.ok(!played.prompts[0]!.includes("Thought: I think"));
    assert.ok(played.prompts[0]!.includes('"keywords"'));
  });

  test("the tools read the actions that they write", () => {
    const { tools = [] } = shopWith().describe();
    for (const action of ["search[red mug]", "click[< prev]"]) {
      const written = tools.flatMap((tool) => {
        const args = tool.argumentsOf(action);
        return args === undefined ? [] : [tool.actionOf(args)];
      });
      assert.deepEqual(written, [action]);
    }
    for (const tool of tools) assert.equal(tool.actionOf({ keywords: 3, value: null }), undefined);
  });

  test("a compact page is the whole prompt", async () => {
    const environment = { definition, config: { layout: "compact", formatPenalty: -0.1 }, seed: 1 };
    const played = await playAgent(gym, {
      environment,
      answers: ["buy"],
      maxTurns: 3,
      config: { historyTurns: 0 },
    });
    assert.match(played.prompts[0]!, /^<\|im_start\|>user\n[a-z0-9 ]+\nsearch<\|im_end\|>/);
    assert.equal(played.turns.length, 3);
    assert.ok(Math.abs(played.environmentReturn + 0.3) < 1e-9);
  });
});
