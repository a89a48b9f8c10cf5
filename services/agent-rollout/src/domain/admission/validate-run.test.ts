import assert from "node:assert/strict";
import { describe, test } from "node:test";
import "../built-ins.ts";
import { type RunParts, validateRun } from "./validate-run.ts";

const LAKE = { key: "dataset.train", name: "frozen_lake", config: {} };
const run = (overrides: Partial<RunParts> = {}): RunParts => ({
  agent: { name: "frozen_lake", config: {} },
  environments: [LAKE],
  ...overrides,
});
const TOKENIZER = JSON.stringify({
  added_tokens: [],
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  decoder: null,
  model: { type: "BPE", vocab: { a: 0, b: 1 }, merges: [] },
});

describe("validateRun()", () => {
  test("finds no problem in a correct run", () => {
    assert.deepEqual(validateRun(run({ warmStart: { policy: "random_legal" } })), []);
  });

  for (const [what, overrides, key, allowed] of [
    ["an unknown agent", { agent: { name: "frozenlake" } }, "agent.name", /did you mean "frozen_lake"/],
    [
      "a configuration left in a file",
      { agent: { name: "frozen_lake", configPath: "a.yaml" } },
      "agent.configPath",
      /inlined/,
    ],
    [
      "a wrong agent configuration",
      { agent: { name: "frozen_lake", config: { historyTurns: -1 } } },
      "agent.config.historyTurns",
      /./,
    ],
    ["an agent without its environment", { environments: [] }, "dataset.train.source", /"environment"/],
    [
      "an agent that works on rows",
      { agent: { name: "single_turn" } },
      "dataset.train.source",
      /rows of a dataset/,
    ],
    [
      "an unknown environment",
      { environments: [{ ...LAKE, name: "lake" }] },
      "dataset.train.environment",
      /frozen_lake/,
    ],
    [
      "a wrong environment configuration",
      { environments: [{ ...LAKE, config: { sise: 4 } }] },
      "dataset.train.config.sise",
      /did you mean "size"/,
    ],
    ["an unknown script", { warmStart: { policy: "random" } }, "warmStart.policy", /random_legal/],
    [
      "a tokenizer without a chat template",
      { tokenizerFiles: { "tokenizer.json": TOKENIZER, "tokenizer_config.json": '{"eos_token":"a"}' } },
      "model.init.tokenizer",
      /chat template/,
    ],
    [
      "a tokenizer without an end of turn",
      { tokenizerFiles: { "tokenizer.json": TOKENIZER, "chat_template.jinja": "a" } },
      "model.init.tokenizer",
      /eos_token/,
    ],
    [
      "a chat template that never ends",
      {
        tokenizerFiles: {
          "tokenizer.json": TOKENIZER,
          "tokenizer_config.json": '{"eos_token":"a"}',
          "chat_template.jinja":
            "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
        },
      },
      "model.init.tokenizer",
      /chat template .*may take \d+ steps/,
    ],
  ] as const) {
    test(`names the key of ${what}`, () => {
      const problems = validateRun(run(overrides));
      assert.deepEqual(
        problems.map((problem) => problem.key),
        [key],
      );
      assert.match(problems[0]!.allowed, allowed);
      assert.match(problems[0]!.message, /^`.*` is .*; it must be ./);
    });
  }

  test("leaves it to the trainer to report a tokenizer that cannot be read", () => {
    assert.deepEqual(validateRun(run({ tokenizerFiles: { "tokenizer.json": "{" } })), []);
  });
});
