import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { agentOf } from "@hone/agents";
import { playAgent } from "@hone/agents/testing";
import "../../built-ins.ts";

/* tools/python.int.test.ts tests `python_math`, as that starts processes. */

const CALL = '<tool_call>{"name": "calculator", "arguments": {"expression": "6 * 12"}}</tool_call>';
const BOXED = "So it is \\boxed{72}.";

describe("the agent math", () => {
  const play = (row: Record<string, unknown>, config: Record<string, unknown> = {}) =>
    playAgent(agentOf("math") ?? assert.fail("no agent"), { row, config, answers: [CALL, BOXED] });

  test("asks for a boxed answer, has a calculator, and makes one training row of its conversation", async () => {
    const { prompts, result, samples, turns, toolMetrics } = await play({ prompt: "What is 6 * 12?" });
    assert.match(prompts[0] ?? "", /You solve math problems step by step\..*\\boxed\{\}.*"calculator"/s);
    assert.match(prompts[1] ?? "", /<tool_response>\n72\n<\/tool_response>/);
    assert.deepEqual(result.metadata, { endedBy: "answer" });
    assert.equal(turns.at(-1)?.responseText, BOXED);
    assert.equal(samples.length, 1);
    assert.equal(toolMetrics.tool_calls, 1);
  });

  test("uses the row's system message or that of its configuration instead of its own", async () => {
    const messages = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "What is 6 * 12?" },
    ];
    assert.doesNotMatch((await play({ prompt: messages })).prompts[0] ?? "", /step by step/);
    const { prompts } = await play({ prompt: "What is 6 * 12?" }, { systemPrompt: "Box it." });
    assert.match(prompts[0] ?? "", /Box it\./);
  });
});
