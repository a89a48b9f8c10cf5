import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { ActionFormat, type ActionTool } from "@hone/agents";
import { readAction, writeAction } from "./action-formats.ts";

const file = path.join(import.meta.dirname, "fixtures/roll-action-parsing.json");
const { cases } = JSON.parse(await readFile(file, "utf8")) as {
  cases: ReadonlyArray<{ pattern: "answer" | "think"; game: string; text: string; content: string }>;
};

const search: ActionTool = {
  name: "search",
  description: "Searches",
  parameters: { type: "object", properties: { words: { type: "string" } } },
  actionOf: ({ words }) => (typeof words === "string" ? `search ${words}` : undefined),
  argumentsOf: (action) => (action.startsWith("search ") ? { words: action.slice(7) } : undefined),
};
const read = (text: string, format: ActionFormat) => readAction({ text, tool_calls: [] }, format, []);
const call = (name: string, args: Record<string, unknown>) => ({ text: "", tool_calls: [{ name, args }] });

describe("readAction()", () => {
  for (const { pattern, game, text, content } of cases) {
    const format = pattern === "answer" ? ActionFormat.answer : ActionFormat.thinkAnswer;
    test(`reads ${JSON.stringify(text)} of ${game} by the pattern ${pattern} as ROLL does`, () => {
      assert.equal(read(text, format), content);
    });
  }

  test("takes the last block of code that was closed", () => {
    const block = (text: string) => read(text, ActionFormat.codeBlock);
    assert.equal(block("I go ```Up```"), "Up");
    assert.equal(block("First ```Up```, no: ``` Down ```."), "Down");
    assert.equal(block("```Up``` and then ```Do"), "Up");
    assert.equal(block("```Up"), "");
    assert.equal(block("Up"), "");
    assert.equal(block(""), "");
  });

  test("takes the whole answer as text, without the space around it", () => {
    assert.equal(read(" go north\n", ActionFormat.text), "go north");
  });

  test("takes the first tool call, if a tool of the environment knows its name and arguments", () => {
    const format = ActionFormat.toolCall;
    assert.equal(readAction(call("search", { words: "red mug" }), format, [search]), "search red mug");
    for (const answer of [call("search", { words: 7 }), call("find", { words: "a" }), call("search", {})]) {
      assert.equal(readAction(answer, format, [search]), "");
    }
    assert.equal(readAction({ text: "search red", tool_calls: [] }, format, [search]), "");
  });

  for (const format of Object.values(ActionFormat)) {
    test(`reads long rubbish as ${format} in linear time`, () => {
      for (const piece of ["<answer>", "<think>", "</think> \n", "```", "<think></think>", "<|im_end|>"]) {
        const text = piece.repeat(200_000);
        assert.ok(read(text, format).length <= text.length);
      }
    });
  }
});

describe("writeAction()", () => {
  for (const format of Object.values(ActionFormat).filter((each) => each !== ActionFormat.toolCall)) {
    test(`writes as ${format} what readAction() reads`, () => {
      assert.equal(read(writeAction("Up", format, []), format), "Up");
    });
  }

  test("writes a tool call as Hermes and Qwen do, and refuses what no tool takes", () => {
    const text = writeAction("search red mug", ActionFormat.toolCall, [search]);
    assert.equal(text, '<tool_call>\n{"name":"search","arguments":{"words":"red mug"}}\n</tool_call>');
    assert.throws(() => writeAction("Up", ActionFormat.toolCall, [search]), /no tool takes it/);
  });
});
