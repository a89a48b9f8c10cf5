import assert from "node:assert/strict";
import { test } from "node:test";
import { makeCalculator } from "@hone/agents";
import { playAgent } from "@hone/agents/testing";
import { agents } from "./agent.ts";

const row = { prompt: "Ann has 12 bags with 7 nuts each. How many nuts in all?" };
const config = { tools: ["calculator"], toolCallFormat: "hermes" };
const tools = { calculator: makeCalculator() };
const CALL = '<tool_call>{"name": "calculator", "arguments": {"expression": " 12 * 7"}}</tool_call>';

test("math_tools lets the calculator do the sum, and is one training row", async () => {
  const played = await playAgent(agents.math_tools, { row, config, tools, answers: [CALL, "#### 84"] });
  assert.match(played.prompts[1] ?? "", /<tool_response>\n84\n/);
  assert.equal(played.turns.at(-1)?.responseText, "#### 84");
  assert.equal(played.samples.length, 1);
});

test("math_tools may answer without a call", async () => {
  const played = await playAgent(agents.math_tools, { row, config, tools, answers: ["#### 84"] });
  assert.equal(played.turns.length, 1);
});
