import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  defineTool,
  InfrastructureError,
  registerTool,
  type ToolContext,
  type ToolRollout,
} from "@hone/agents";
import { delay, Outcome } from "@hone/core";
import { ChatRenderer } from "@hone/tokenizer";
import { CHATML_TEMPLATE, chatmlTokenizer, TOOL_TEMPLATE } from "@hone/tokenizer/testing";
import { z } from "zod";
import "../../built-ins.ts";
import type { RolloutRecord } from "../../rollout-job.ts";
import { rowJob, runJob, WritingPolicy } from "../../testing/row-rollouts.ts";

const renderer = new ChatRenderer(chatmlTokenizer(TOOL_TEMPLATE));
const ROW = { prompt: "What is 6 * 7?" };
const call = (name: string, args: unknown) =>
  `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
const CALCULATE = call("calculator", { expression: "6 * 7" });

/** What the test's own tool does. */
let behave: (
  args: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
  wait: ToolContext<string>["wait"],
) => unknown = () => "done";
const opened: ToolRollout[] = [];
let numClosed = 0;
registerTool("probe", {
  configSchema: z.strictObject({}),
  create: () =>
    defineTool<string>({
      name: "probe",
      description: "For tests.",
      parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
      open: (rollout) => {
        opened.push(rollout);
        return `state ${opened.length}`;
      },
      call: async (args, { state, signal, wait }) => {
        assert.match(state, /^state/);
        return (await behave(args, signal, wait)) as string;
      },
      close: () => {
        numClosed++;
      },
    }),
});

async function play(
  texts: readonly string[],
  config: Record<string, unknown> = {},
  row: Record<string, unknown> = ROW,
  overrides: Parameters<typeof rowJob>[2] = {},
): Promise<{ record: RolloutRecord; prompts: string[] }> {
  const policy = new WritingPolicy(renderer, ...texts);
  const tools = config.tools ?? ["calculator", "probe"];
  const job = rowJob("tool_agent", row, { ...overrides, config: { ...config, tools } });
  return { record: await runJob(job, renderer, policy), prompts: policy.prompts };
}

describe("the agent tool_agent", () => {
  test("runs tools until an answer has no call, in one sample with exactly the tokens that were sampled", async () => {
    const { record, prompts } = await play([`Let me see.\n${CALCULATE}`, "It is 42."]);
    assert.equal(record.outcome, Outcome.completed);
    assert.deepEqual(record.metadata, { endedBy: "answer" });
    assert.equal(record.samples.length, 1);
    assert.equal(
      prompts[1],
      `${prompts[0]}Let me see.\n${CALCULATE}<|im_end|>\n<|im_start|>user\n<tool_response>\n42\n</tool_response><|im_end|>\n<|im_start|>assistant\n`,
    );
    const [sample] = record.samples;
    assert.ok(sample !== undefined);
    const trained = Array.from(sample.tokenIds).filter((_, i) => sample.lossMask[i] === 1);
    assert.equal(
      renderer.tokenizer.decode(trained),
      `Let me see.\n${CALCULATE}<|im_end|>It is 42.<|im_end|>`,
    );
    assert.equal(record.metrics.tool_calls, 1);
    assert.equal(record.metrics.num_turns, 2);
    assert.equal(record.turns.at(-1)?.responseText, "It is 42.");
  });

  test("shows the tools by the chat template, or by a system message if the template cannot", async () => {
    const { prompts } = await play(["42"]);
    assert.match(prompts[0] ?? "", /<tools>\n\{"type": ?"function", ?"function": ?\{"name": ?"calculator"/);
    const plain = new ChatRenderer(chatmlTokenizer(CHATML_TEMPLATE));
    const policy = new WritingPolicy(plain, CALCULATE, "42");
    const job = rowJob("tool_agent", ROW, { config: { tools: ["calculator"], systemPrompt: "Be brief." } });
    const record = await runJob(job, plain, policy);
    assert.match(
      policy.prompts[0] ?? "",
      /^<\|im_start\|>system\nBe brief\.\n\nYou can call .*"calculator"/s,
    );
    assert.ok(policy.prompts[1]?.endsWith("<|im_start|>tool\n42<|im_end|>\n<|im_start|>assistant\n"));
    assert.equal(record.samples.length, 1);
  });

  test("runs several calls of one answer in their order, and refuses those beyond the limit", async () => {
    const calls = ["1+1", "2+2", "3+3"].map((expression) => call("calculator", { expression }));
    const { record, prompts } = await play([calls.join("\n"), "done"], { maxParallelCalls: 2 });
    const answers = [...(prompts[1] ?? "").matchAll(/<tool_response>\n(.*)\n<\/tool_response>/g)];
    assert.deepEqual(
      answers.map(([, text]) => text),
      ["2", "4", "Not run: at most 2 calls at once."],
    );
    assert.equal(record.samples.length, 1);
  });

  for (const [what, text, told] of [
    ["an unknown tool", call("calculatr", {}), /Unknown tool "calculatr"\. Tools: calculator, probe\./],
    ["a missing argument", call("calculator", {}), /Invalid arguments for calculator\. .*expression/],
    [
      "an argument of another type",
      call("calculator", { expression: 7 }),
      /Invalid arguments for calculator\. expression: /,
    ],
    [
      "a call that is not JSON",
      "<tool_call>6 * 7</tool_call>",
      /Invalid tool call: what you wrote is no JSON\./,
    ],
    ["a failing tool", call("calculator", { expression: "1/0" }), /Error: a number cannot be divided by 0/],
  ] as const) {
    test(`shows ${what} to the model as an error, and continues`, async () => {
      const { record, prompts } = await play([text, "I give up."]);
      assert.match(prompts[1]?.slice(prompts[0]?.length) ?? "", told);
      assert.equal(record.outcome, Outcome.completed);
      assert.equal(record.samples.length, 1);
    });
  }

  test("counts for each tool the valid calls, those that failed and the last error", async () => {
    const calls = ["1/0", "6*7", "2/0"].map((expression) => call("calculator", { expression }));
    const { record } = await play([...calls, call("calculator", { expression: 7 }), "done"], {
      maxInvalidAnswers: 9,
    });
    assert.deepEqual(
      record.toolUses.map(({ name, calls, failed }) => [name, calls, failed]),
      [["calculator", 3, 2]],
    );
    assert.match(record.toolUses[0]?.error ?? "", /a number cannot be divided by 0/);
  });

  test("records the number of unreadable calls with their turn, unless the answer was cut off", async () => {
    const unreadable = "<tool_call>6 * 7</tool_call>";
    const { record } = await play([`${unreadable} ${unreadable}`, CALCULATE, "42"]);
    assert.deepEqual(
      record.turns.map(({ info }) => info?.invalidToolCalls),
      [2, undefined, undefined],
    );
    const cut = await play([`<tool_call>${"6 * ".repeat(300)}`], {}, ROW, {
      sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: 20 },
    });
    assert.equal(cut.record.turns[0]?.finishReason, "length");
    assert.equal(cut.record.turns[0]?.info?.invalidToolCalls, undefined);
  });

  test("ends after too many consecutive answers with invalid calls only, and records why", async () => {
    const { record } = await play([call("nothing", {})], { maxInvalidAnswers: 2 });
    assert.equal(record.turns.length, 2);
    assert.deepEqual(record.metadata, { endedBy: "invalid_calls" });
    assert.equal(record.metrics.tool_calls_invalid, 2);
    assert.equal(record.turns[0]?.info?.isValid, false);
    const mixed = await play([call("nothing", {}), CALCULATE, call("nothing", {}), "42"], {
      maxInvalidAnswers: 2,
    });
    assert.deepEqual(mixed.record.metadata, { endedBy: "answer" });
  });

  test("ends as truncated at the limit of turns and when an answer is cut off", async () => {
    const limits = { maxTurns: 2, maxContextTokens: 8_000, deadlineMs: 30_000, maxAttempts: 1 };
    const { record } = await play([CALCULATE], {}, ROW, { limits });
    assert.equal(record.outcome, Outcome.truncated);
    assert.deepEqual([record.turns.length, record.metadata], [2, { endedBy: "turns" }]);
    const sampling = { temperature: 1, topP: 1, topK: 0, maxNewTokens: 20 };
    const cut = await play([CALCULATE], {}, ROW, { sampling });
    assert.deepEqual([cut.record.outcome, cut.record.metadata], [Outcome.truncated, { endedBy: "length" }]);
  });

  test("cuts a tool's long answer to its limit and marks the place", async () => {
    behave = ({ text }) => `begin ${String(text).repeat(5_000)} end`;
    for (const [toolAnswerCut, shape] of [
      ["left", /^\[\.\.\. \d+(?: or more)? tokens cut \.\.\.\]\n.* end$/s],
      ["middle", /^begin .*\n\[\.\.\. \d+(?: or more)? tokens cut \.\.\.\]\n.* end$/s],
      ["right", /^begin .*\n\[\.\.\. \d+(?: or more)? tokens cut \.\.\.\]$/s],
    ] as const) {
      const config = { toolAnswerCut, maxToolAnswerTokens: 60 };
      const { record, prompts } = await play([call("probe", { text: "xyz " }), "done"], config);
      const [, text = ""] = /<tool_response>\n(.*)\n<\/tool_response>/s.exec(prompts[1] ?? "") ?? [];
      assert.match(text, shape);
      assert.ok(renderer.tokenizer.encode(text).length <= 60);
      assert.equal(record.metrics.tool_answers_cut, 1);
    }
  });

  test("stops a call at its deadline and shows that to the model", async () => {
    let stopped = false;
    behave = (_, signal) =>
      new Promise(() => {
        signal.addEventListener("abort", () => {
          stopped = true;
        });
      });
    const { prompts } = await play([call("probe", { text: "" }), "done"], { toolDeadlineMs: 50 });
    assert.match(prompts[1] ?? "", /Error: probe took longer than 50 ms\./);
    assert.ok(stopped);
  });

  test("does not count a tool's wait for one of Hone's own parts", async () => {
    behave = (_args, _signal, wait) => wait(() => delay(2_000));
    const limits = { maxTurns: 6, maxContextTokens: 8_000, deadlineMs: 1_500, maxAttempts: 1 };
    const texts = [call("probe", { text: "" }), "done"];
    assert.equal((await play(texts, {}, ROW, { limits })).record.outcome, Outcome.completed);
    behave = () => delay(2_000);
    assert.equal((await play(texts, {}, ROW, { limits })).record.outcome, Outcome.timedOut);
  });

  test("repeats a call that failed for a reason outside the agent, then the attempt, and never scores it", async () => {
    let numCalls = 0;
    behave = () => {
      if (++numCalls < 3) throw new InfrastructureError("call", "the server does not answer", "silence");
      return "at last";
    };
    const { record, prompts } = await play([call("probe", { text: "" }), "done"], { toolAttempts: 3 });
    assert.match(prompts[1] ?? "", /at last/);
    assert.deepEqual(record.failedAttempts, []);
    numCalls = Number.NEGATIVE_INFINITY;
    const failed = await play([call("probe", { text: "" })], { toolAttempts: 1 });
    assert.equal(failed.record.outcome, Outcome.infraFailed);
    assert.match(failed.record.reason, /the server does not answer/);
    assert.equal(failed.record.failedAttempts.length, 1);
  });

  test("opens a tool once for a rollout with what the row says, and closes it", async () => {
    behave = () => ({ text: "ok", reward: 0.5, metrics: { probes: 1 } });
    opened.length = 0;
    numClosed = 0;
    const row = {
      ...ROW,
      extra_info: {
        tools_kwargs: { probe: { create_kwargs: { ground_truth: "42" } } },
        tool_selection: ["probe"],
      },
    };
    const texts = [call("probe", { text: "" }), call("probe", { text: "" }), CALCULATE, "done"];
    const { record, prompts } = await play(texts, {}, row);
    assert.deepEqual(
      opened.map(({ kwargs }) => kwargs),
      [{ ground_truth: "42" }],
    );
    assert.equal(numClosed, 1);
    assert.equal(record.environmentReturn, 1);
    assert.deepEqual(
      record.turns.map(({ reward }) => reward),
      [0.5, 0.5, undefined, undefined],
    );
    assert.equal(record.metrics.probes, 2);
    assert.doesNotMatch(prompts[0] ?? "", /calculator/);
    assert.match(prompts[3] ?? "", /Unknown tool "calculator"\. Tools: probe\./);
  });

  test("names the key of each error in its configuration", async () => {
    for (const [config, reason] of [
      [{ tools: ["calculatr"] }, /`tools\.0` must be one of .*did you mean "calculator"/],
      [{ tools: [{ name: "search", config: { corpus: "a", k: 1 } }] }, /`tools\.0\.config\.k` must be/],
      [{ tools: ["probe", "probe"] }, /each tool must have a name of its own/],
      [{ toolFile: "missing.yaml" }, /`toolFile` must be a YAML file of tools/],
    ] as const) {
      const { record } = await play(["42"], config);
      assert.equal(record.outcome, Outcome.infraFailed);
      assert.match(record.reason, reason);
    }
  });
});
