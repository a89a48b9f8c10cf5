import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome } from "@hone/core";
import { ChatRenderer } from "@hone/tokenizer";
import { chatmlTokenizer, TOOL_TEMPLATE } from "@hone/tokenizer/testing";
import "../../built-ins.ts";
import { rowJob, runJob, WritingPolicy } from "../../testing/row-rollouts.ts";

const renderer = new ChatRenderer(chatmlTokenizer(TOOL_TEMPLATE));
const CALL = '<tool_call>\n{"name": "calculator", "arguments": {"expression": "6 * 7"}}\n</tool_call>';

function play(texts: readonly string[], changes: Parameters<typeof rowJob>[2] = {}) {
  const policy = new WritingPolicy(renderer, ...texts);
  const job = rowJob(
    "react",
    { prompt: "What is 6 * 7?" },
    {
      ...changes,
      config: { tools: ["calculator"], systemPrompt: "Be brief.", ...changes.config },
    },
  );
  return { policy, record: runJob(job, renderer, policy) };
}

describe("the agent react", () => {
  test("makes one sample of its conversation, with exactly the tokens that were sampled", async () => {
    const { policy, record } = play([`Let me see.\n${CALL}`, "It is 42."]);
    const { outcome, samples, metrics, reason } = await record;
    assert.equal(outcome, Outcome.completed, reason);
    assert.equal(samples.length, 1);
    assert.deepEqual([metrics.num_turns, metrics.tool_calls], [2, 1]);
    const [first = "", second = ""] = policy.prompts;
    assert.match(first, /^<\|im_start\|>system\nBe brief\.\n\n<tools>/);
    assert.equal(
      second,
      `${first}Let me see.\n${CALL}<|im_end|>\n<|im_start|>user\n<tool_response>\n42\n</tool_response><|im_end|>\n<|im_start|>assistant\n`,
    );
  });

  test("shows the model what is wrong with a call", async () => {
    const { policy, record } = play([CALL.replace("expression", "text"), "I give up."]);
    assert.equal((await record).outcome, Outcome.completed);
    assert.match(policy.prompts[1] ?? "", /<tool_response>\n.*(schema|expression|Invalid)/s);
  });

  test("runs as many calls of each answer as its configuration allows", async () => {
    const two = `${CALL}\n${CALL}`;
    const { policy, record } = play([`${two}\n${CALL}`, two, "It is 42."], {
      config: { maxParallelCalls: 2 },
    });
    assert.equal((await record).metrics.tool_calls, 4);
    const told = (prompt = "") =>
      [...prompt.matchAll(/<tool_response>\n(.*?)\n<\/tool_response>/gs)].map(([, text]) => text);
    const first = ["42", "42", "Not run: at most 2 calls at once."];
    assert.deepEqual(told(policy.prompts[1]), first);
    assert.deepEqual(told(policy.prompts[2]), [...first, "42", "42"]);
  });

  test("ends as truncated at the limit of turns", async () => {
    const limits = { maxTurns: 2, maxContextTokens: 8_000, deadlineMs: 30_000, maxAttempts: 1 };
    const { outcome, turns } = await play([CALL], { limits }).record;
    assert.deepEqual([outcome, turns.length], [Outcome.truncated, 2]);
  });

  test("plays several rollouts at once", async () => {
    const records = await Promise.all([play([CALL, "42"]), play(["7"])].map(({ record }) => record));
    assert.deepEqual(
      records.map(({ turns }) => turns.length),
      [2, 1],
    );
  });
});
