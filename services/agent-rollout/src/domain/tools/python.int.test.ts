import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { agentOf } from "@hone/agents";
import { playAgent } from "@hone/agents/testing";
import "../built-ins.ts";

const write = (code: string) =>
  `<tool_call>\n${JSON.stringify({ name: "python", arguments: { code } })}\n</tool_call>`;
const ROW = { prompt: "What is 6 * 7?" };

describe("the tool python", { timeout: 240_000 }, () => {
  const play = (config: Record<string, unknown>, ...codes: string[]) =>
    playAgent(agentOf("python_math") ?? assert.fail("no agent"), {
      row: ROW,
      config: { tools: [{ name: "python", config }], maxToolAnswerTokens: 2_000 },
      answers: [...codes.map(write), "\\boxed{42}"],
    });
  const told = (prompts: readonly string[]) =>
    prompts
      .slice(1)
      .map((prompt) => [...prompt.matchAll(/<tool_response>\n(.*?)\n<\/tool_response>/gs)].at(-1)?.[1] ?? "");

  test("shows the model what its code printed, what it raised, and what stopped it", async () => {
    const { prompts, turns } = await play(
      { timeMs: 3_000 },
      "print(6 * 7)",
      "6 * 7",
      "x = 1",
      "import os\nos.fork()",
      "while True: pass",
      "x = []\nwhile True: x.append(bytearray(10 ** 7))",
    );
    const [printed, value, nothing, fork, loop, memory] = told(prompts);
    assert.deepEqual([printed, value, nothing], ["42", "42", "(no output)"]);
    assert.match(fork ?? "", /OSError/);
    assert.equal(loop, "Error: the code took longer than 3000 ms and was stopped.");
    assert.match(memory ?? "", /MemoryError/);
    assert.equal(turns.at(-1)?.responseText, "\\boxed{42}");
  });

  test("keeps names between the calls of a rollout only if its configuration says so", async () => {
    const codes = ["x = 40", "x += 2\nprint(x)"] as const;
    assert.equal(told((await play({ keepsState: true }, ...codes)).prompts)[1], "42");
    assert.match(told((await play({}, ...codes)).prompts)[1] ?? "", /NameError/);
  });
});

describe("the tool execute_python", { timeout: 120_000 }, () => {
  test("answers with a return code and both outputs, as the rows of ChatLearn's mathcode expect", async () => {
    const calls = ["print(6 * 7)", "6 * 7", "1 / 0", "while True: pass"].map(
      (code) =>
        `<tool_call>\n${JSON.stringify({ name: "execute_python", arguments: { code } })}\n</tool_call>`,
    );
    const { prompts } = await playAgent(agentOf("mathcode") ?? assert.fail("no agent"), {
      row: ROW,
      config: { tools: [{ name: "execute_python", config: { timeMs: 2_000 } }] },
      answers: [...calls, "\\boxed{42}"],
    });
    const told = [...(prompts.at(-1) ?? "").matchAll(/<tool_response>\n(.*?)\n<\/tool_response>/gs)];
    const [printed, silent, failed, endless] = told.map(([, text]) => text ?? "");
    assert.equal(printed, "<returncode>0</returncode><stdout>42\n</stdout><stderr></stderr>");
    assert.equal(silent, "<returncode>0</returncode><stdout></stdout><stderr></stderr>");
    assert.match(
      failed ?? "",
      /^<returncode>1<\/returncode><stdout><\/stdout><stderr>Traceback.*ZeroDivisionError/s,
    );
    assert.match(endless ?? "", /^<returncode>-1<\/returncode>.*took longer than 2000 ms/s);
  });
});
