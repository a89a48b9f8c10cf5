import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BadRowError } from "../errors.ts";
import { agentOfRow, promptOfRow, toolsOfRow } from "./task-row.ts";

/** A row in verl's format. */
const VERL_ROW = {
  data_source: "openai/gsm8k",
  agent_name: "tool_agent",
  prompt: [
    { role: "system", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "2+" },
        { type: "text", text: "2?" },
      ],
    },
  ],
  ability: "math",
  reward_model: { style: "rule", ground_truth: "4" },
  extra_info: {
    split: "train",
    index: 0,
    need_tools_kwargs: true,
    tools_kwargs: { calculator: { create_kwargs: { ground_truth: "4" } } },
    tool_selection: ["calculator"],
  },
};

const readTaskRow = (task: Parameters<typeof promptOfRow>[0]) => ({
  messages: promptOfRow(task),
  ...toolsOfRow(task),
});

describe("the columns of a row", () => {
  test("reads verl's rows", () => {
    assert.deepEqual(readTaskRow({ id: "rows.jsonl:1", row: VERL_ROW }), {
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "2+2?" },
      ],
      toolsKwargs: { calculator: { create_kwargs: { ground_truth: "4" } } },
      toolSelection: ["calculator"],
    });
    assert.deepEqual(agentOfRow(VERL_ROW), { name: "tool_agent", configPath: undefined });
  });

  test("reads a string as one message of the user, and null as absent", () => {
    const row = { prompt: "2+2?", extra_info: null, tools_kwargs: null, agent_name: "" };
    assert.deepEqual(readTaskRow({ id: "r", row }), {
      messages: [{ role: "user", content: "2+2?" }],
      toolsKwargs: {},
      toolSelection: undefined,
    });
    assert.deepEqual(agentOfRow(row), { name: undefined, configPath: undefined });
  });

  test("reads tool calls and answers of tools, as OpenAI and as chat templates write them", () => {
    const called = (args: unknown) => ({
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "calculator", arguments: args } }],
    });
    const answered = {
      role: "tool",
      content: "42",
      tool_call_id: "c1",
      name: "calculator",
      tool_calls: null,
    };
    const asked = { role: "user", content: "6*7?", name: null };
    for (const args of ['{"expression":"6*7"}', { expression: "6*7" }]) {
      const row = { prompt: [asked, called(args), answered, { role: "assistant", content: "42" }] };
      assert.deepEqual(promptOfRow({ id: "r", row }), [
        { role: "user", content: "6*7?" },
        {
          role: "assistant",
          content: "",
          tool_calls: [
            {
              id: "c1",
              type: "function",
              function: { name: "calculator", arguments: { expression: "6*7" } },
            },
          ],
        },
        { role: "tool", content: "42", tool_call_id: "c1", name: "calculator" },
        { role: "assistant", content: "42" },
      ]);
    }
  });

  for (const [what, row, rule] of [
    [
      "a message without a text and without calls",
      { prompt: [{ role: "user" }] },
      /`prompt\.0` must be a message with a text/,
    ],
    [
      "arguments of a call that are no object",
      {
        prompt: [
          { role: "assistant", content: "", tool_calls: [{ function: { name: "f", arguments: "[1]" } }] },
        ],
      },
      /`prompt` must be/,
    ],
    [
      "calls of the user",
      { prompt: [{ role: "user", content: "a", tool_calls: [{ function: { name: "f", arguments: {} } }] }] },
      /`prompt\.0` must be the assistant's where it has calls/,
    ],
    ["a task without a row", undefined, /this agent needs a row of a dataset/],
    ["a row without a prompt", { question: "2+2?" }, /`prompt` must be a text, or a list .*, but is absent/],
    ["an empty prompt", { prompt: [] }, /`prompt` must be/],
    ["an image", { prompt: [{ role: "user", content: [{ type: "image_url" }] }] }, /`prompt` must be/],
    ["an unknown role", { prompt: [{ role: "wizard", content: "a" }] }, /`prompt` must be/],
    [
      "a selection that is no list",
      { prompt: "a", tool_selection: "calculator" },
      /`tool_selection` must be/,
    ],
  ] as const) {
    test(`refuses ${what} with a BadRowError that names the row`, () => {
      assert.throws(
        () => readTaskRow({ id: "rows.jsonl:7", row }),
        (error) =>
          error instanceof BadRowError && rule.test(error.message) && /rows\.jsonl:7/.test(error.message),
      );
    });
  }
});
