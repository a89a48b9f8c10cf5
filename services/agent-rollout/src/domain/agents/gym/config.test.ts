import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ActionFormat, type EnvironmentDescription } from "@hone/agents";
import { FrozenLake, frozenLakeConfigSchema } from "../../environments/frozen-lake/frozen-lake.ts";
import { gymConfigSchema, promptsOf } from "./config.ts";
import { gymAgent } from "./gym-agent.ts";
import { fillTemplate } from "./prompt-template.ts";

const lake = (config = {}) => new FrozenLake(frozenLakeConfigSchema.parse(config));
const promptsIn = (environment: FrozenLake, config = {}) =>
  promptsOf(gymConfigSchema.parse(config), (format) => environment.describe(format));
const checked = (config: object, description: EnvironmentDescription) =>
  gymAgent.checkEnvironment?.(gymConfigSchema.parse(config), () => description) ?? [];

describe("the prompts of gym", () => {
  test("are ROLL's common prompts in an environment that does not say otherwise", () => {
    const prompts = promptsIn(lake());
    assert.match(prompts.systemPrompt, /^You're a helpful assistant\. You are a good game player\./);
    assert.match(
      prompts.instruction,
      /format is <answer>Right<\/answer>\nThe meaning of each symbol in the state is:\nP: player/,
    );
    assert.match(
      prompts.promptTemplate,
      /^Turn \{turn\}:\nObservation:\n\{observation\}\nStrictly follow this format:\n1\. output format is/,
    );
    assert.equal(prompts.actionFormat, ActionFormat.answer);
    assert.equal(gymConfigSchema.parse({}).historyTurns, null);
  });

  test("are the environment's where it words them itself, unless a preset is named", () => {
    const environment = lake({ preset: "agentjet" });
    const own = promptsIn(environment);
    assert.match(own.systemPrompt, /^You are a helpful assistant\. You are walking on a frozen lake\./);
    assert.equal(own.actionFormat, ActionFormat.codeBlock);
    const named = promptsIn(environment, { preset: "roll_think" });
    assert.match(named.systemPrompt, /good game player/);
    assert.equal(named.actionFormat, ActionFormat.thinkAnswer);
  });

  test("are the configuration's before all others", () => {
    const config = {
      systemPrompt: "s",
      instruction: "i",
      promptTemplate: "{observation}",
      actionFormat: "text",
    };
    const { systemPrompt, instruction, promptTemplate, actionFormat } = promptsIn(
      lake({ preset: "agentjet" }),
      config,
    );
    assert.deepEqual({ systemPrompt, instruction, promptTemplate, actionFormat }, config);
  });

  test("tell how tools are used where actions are tool calls", () => {
    const prompts = promptsIn(lake(), { actionFormat: "tool_call" });
    assert.match(prompts.instruction, /Use the move_player tool/);
    assert.doesNotMatch(prompts.promptTemplate, /<answer>/);
    assert.deepEqual(
      prompts.tools.map(({ name }) => name),
      ["move_player"],
    );
  });
});

describe("a check of gym before a run", () => {
  test("refuses a placeholder that the environment will not fill, and accepts other braces", () => {
    const description = { infoKeys: ["player_row"] };
    const [problem] = checked({ promptTemplate: "{observation} {colour}" }, description);
    assert.deepEqual(problem?.path, ["promptTemplate"]);
    assert.match(problem?.allowed ?? "", /\{observation\}.*\{player_row\}/);
    assert.deepEqual(checked({ promptTemplate: '{observation} {player_row} {"a": 1} {}' }, description), []);
    // An environment may not know its info in advance.
    assert.deepEqual(checked({ promptTemplate: "{colour}" }, {}), []);
  });

  test("refuses tool calls in an environment without tools", () => {
    const [problem] = checked({ actionFormat: "tool_call" }, {});
    assert.deepEqual(problem?.path, ["actionFormat"]);
  });
});

describe("fillTemplate()", () => {
  const figures = { observation: "{turn}", turn: 2, actionsLeft: 3, actions: "Up", maxNewTokens: 4 };

  test("inserts every value unchanged, even one that looks like a placeholder", () => {
    assert.equal(fillTemplate("{turn}/{turn_idx} {observation} {row}", figures, { row: 7 }), "2/2 {turn} 7");
  });

  test("says which placeholder the environment does not fill", () => {
    assert.throws(
      () => fillTemplate("{colour}", figures, { row: 7 }),
      /holds \{colour\}.*\{observation\}.*\{row\}/,
    );
  });
});
