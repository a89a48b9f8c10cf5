import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { agentOf, BadRowError, checkConfig } from "@hone/agents";
import { playAgent } from "@hone/agents/testing";
import "../../built-ins.ts";

/* tools/python.int.test.ts tests the tool of `mathcode`, as that starts processes. */

const row = (groundTruth: unknown) => ({
  data_source: "DigitalLearningGmbH/MATH-lighteval",
  prompt: [{ role: "user", content: "What is one half?" }],
  reward_model: { style: "rule", ground_truth: groundTruth },
  agent_name: "matheval_agent",
});
const check = (answer: string) =>
  `<tool_call>${JSON.stringify({ name: "mathlighteval_reward", arguments: { answer } })}</tool_call>`;
const BOXED = "It is \\boxed{\\frac{1}{2}}.";

describe("the agent matheval", () => {
  const agent = agentOf("matheval") ?? assert.fail("no agent");
  const play = (
    answers: readonly string[],
    config: Record<string, unknown> = {},
    groundTruth: unknown = "0.5",
  ) => playAgent(agent, { row: row(groundTruth), config, answers });
  const told = (prompts: readonly string[]) =>
    [...(prompts.at(-1) ?? "").matchAll(/<tool_response>\n(.*?)\n<\/tool_response>/gs)].map(
      ([, text]) => text,
    );

  test("says whether an answer is right by the rules of the judge math, and gives no reward for it", async () => {
    const { prompts, result, samples, toolMetrics, toolReward } = await play([
      check("2"),
      check("\\frac12"),
      BOXED,
    ]);
    assert.deepEqual(told(prompts), ["The answer is wrong.", "The answer is correct."]);
    assert.deepEqual(result.metadata, { endedBy: "answer" });
    assert.equal(samples.length, 1);
    assert.deepEqual([toolMetrics.answers_checked, toolMetrics.answers_checked_right], [2, 1]);
    assert.equal(toolReward, 0);
  });

  test("takes a right answer that is a number", async () => {
    assert.deepEqual(told((await play([check("12"), BOXED], {}, 12)).prompts), ["The answer is correct."]);
  });

  test("checks one answer for each answer of the model", async () => {
    const guesses = [check("1"), check("2"), check("0.5")].join("\n");
    const { prompts, toolMetrics } = await play([guesses, BOXED]);
    assert.equal(told(prompts)[1], "Not run: at most 1 calls at once.");
    assert.equal(toolMetrics.answers_checked, 1);
  });

  test("ends after max_ai_message_turn answers, and after max_total_token_length tokens", async () => {
    const turns = await play([check("2")], { max_ai_message_turn: 3, max_total_token_length: 32_768 });
    assert.equal(turns.turns.length, 3);
    assert.deepEqual([turns.result.isTruncated, turns.result.metadata?.endedBy], [true, "turns"]);
    assert.equal(turns.toolMetrics.answers_checked, 2);
    const tokens = await play([check("2")], { max_total_token_length: 10 });
    assert.equal(tokens.turns.length, 1);
    assert.deepEqual([tokens.result.isTruncated, tokens.result.metadata?.endedBy], [true, "tokens"]);
  });

  test("a row without a right answer cannot be played", async () => {
    await assert.rejects(play([check("2"), BOXED], {}, null), (error) => {
      assert.ok(error instanceof BadRowError);
      assert.match(error.message, /`reward_model\.ground_truth` must be the right answer/);
      return true;
    });
  });

  for (const name of ["matheval", "mathcode", "matheval_agent", "mathcode_agent"]) {
    test(`${name} refuses an unknown key with the nearest known one`, () => {
      const definition = agentOf(name) ?? assert.fail("no agent");
      const checked = checkConfig(definition.configSchema, { max_ai_message_turns: 3 });
      assert.equal(checked.kind, "invalid");
      assert.match(checked.problems[0]?.allowed ?? "", /did you mean "max_ai_message_turn"\?/);
    });
  }
});
