import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { makeWheel } from "@hone/sandbox/testing";
import { temporaryFolder } from "@hone/testing";
import { TOOL_TEMPLATE } from "@hone/tokenizer/testing";
import { startStack, type TestStack } from "../support/stack.ts";
import { saveTinyModel } from "../support/tiny-model.ts";

/* A file of rows with its agent's YAML file, as users of ChatLearn have them, played by a model that is behind a URL. */

const MAX_CONTEXT_TOKENS = 8_192;
/** It uses a package of the operator's folder. */
const PROGRAM = "import tiny\nprint(tiny.add_up(1, 8))";
const TINY = "def add_up(first, last):\n    return sum(range(first, last + 1))\n";
/** Rows in the form in which ChatLearn's programs write them, with their names of agents, tools and files. */
const ROWS = [
  {
    agent_name: "matheval_agent",
    agent_cfg_path: "template/agent/math_eval.yaml",
    data_source: "DigitalLearningGmbH/MATH-lighteval",
    prompt: [
      { role: "system", content: "Check your answer with mathlighteval_reward, and box it." },
      { role: "user", content: "What is 3 divided by 4?" },
    ],
    ability: "math",
    reward_model: { style: "rule", ground_truth: "\\frac{3}{4}" },
    extra_info: { split: "train", index: 0 },
  },
  {
    agent_name: "mathcode_agent",
    agent_cfg_path: "template/agent/math_code.yaml",
    data_source: "openai/gsm8k",
    prompt: [
      { role: "system", content: "Compute with execute_python, and box the result." },
      { role: "user", content: "Add the numbers from 1 to 8." },
    ],
    ability: "math",
    reward_model: { style: "rule", ground_truth: "36" },
    extra_info: { split: "train", index: 1 },
  },
  {
    agent_name: "matheval_agent",
    agent_cfg_path: "template/agent/math_eval.yaml",
    data_source: "DigitalLearningGmbH/MATH-lighteval",
    prompt: [{ role: "user", content: "Guess a number." }],
    ability: "math",
    reward_model: { style: "rule", ground_truth: "7" },
    extra_info: { split: "train", index: 2 },
  },
];

interface Message {
  readonly role: string;
  readonly content: string | null;
}

describe("rows that were made for ChatLearn's agents", { timeout: 240_000 }, () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let stack: TestStack;
  let server: Server;
  let runFile: string;
  const asked: { messages: Message[]; tools: string[] }[] = [];

  /** What the model behind the URL answers: a call, until a tool has told it what it wants to know. */
  function answerTo(messages: readonly Message[]): {
    content: string;
    call?: { name: string; args: unknown };
  } {
    const question = messages.find(({ role }) => role === "user")?.content ?? "";
    const told = messages.filter(({ role }) => role === "tool").map(({ content }) => content ?? "");
    if (question.startsWith("Add")) {
      const sum = /<stdout>(\d+)\n<\/stdout>/.exec(told.at(-1) ?? "")?.[1];
      if (sum === undefined)
        return { content: "", call: { name: "execute_python", args: { code: PROGRAM } } };
      return { content: `So it is \\boxed{${sum}}.` };
    }
    if (question.startsWith("Guess")) {
      return { content: "", call: { name: "mathlighteval_reward", args: { answer: String(told.length) } } };
    }
    if (told.at(-1) === "The answer is correct.") return { content: "So it is \\boxed{3/4}." };
    const answer = told.length === 0 ? "4/3" : "3/4";
    return { content: "Let me see.", call: { name: "mathlighteval_reward", args: { answer } } };
  }

  before(async () => {
    server = createServer(async (request, response) => {
      let text = "";
      for await (const chunk of request) text += String(chunk);
      const { messages, tools = [] } = JSON.parse(text) as {
        messages: Message[];
        tools?: { function: { name: string } }[];
      };
      asked.push({ messages, tools: tools.map(({ function: { name } }) => name) });
      const { content, call } = answerTo(messages);
      const calls = call && [
        { id: "a", type: "function", function: { name: call.name, arguments: JSON.stringify(call.args) } },
      ];
      const message = { role: "assistant", content, ...(calls !== undefined && { tool_calls: calls }) };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ choices: [{ message, finish_reason: "stop" }] }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    folder = await temporaryFolder("chatlearn");
    const files = path.join(folder.path, "files");
    await mkdir(path.join(files, "template", "agent"), { recursive: true });
    await writeFile(
      path.join(files, "template", "agent", "math_eval.yaml"),
      "max_total_token_length: 32768\nmax_ai_message_turn: 3\n",
    );
    await writeFile(
      path.join(files, "template", "agent", "math_code.yaml"),
      "max_ai_message_turn: 3\ntools: [{ name: execute_python, config: { timeMs: 60000, packages: [tiny] } }]\n",
    );
    const wheels = path.join(folder.path, "wheels");
    await mkdir(wheels);
    await writeFile(
      path.join(wheels, "tiny-1.0-py3-none-any.whl"),
      makeWheel({ files: { "tiny.py": TINY } }),
    );
    await writeFile(path.join(files, "template", "wrong.yaml"), "max_ai_message_turns: 3\n");
    const lines = (rows: readonly unknown[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
    await writeFile(path.join(files, "train_agent.json"), lines(ROWS));
    await writeFile(
      path.join(files, "wrong_agent.json"),
      lines(ROWS.map((row) => ({ ...row, agent_cfg_path: "template/wrong.yaml" }))),
    );
    await saveTinyModel(path.join(folder.path, "model"), {
      maxPositions: MAX_CONTEXT_TOKENS,
      chatTemplate: TOOL_TEMPLATE,
    });
    runFile = await writeRun("run", "train_agent.json");
    stack = await startStack({
      env: { HONE_FILES: files, HONE_MODEL_FOLDERS: folder.path, HONE_SANDBOX_PACKAGES: wheels },
    });
  });
  after(async () => {
    server?.closeAllConnections();
    server?.close();
    await stack?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  async function writeRun(name: string, rows: string): Promise<string> {
    const source = { source: "jsonl", path: rows };
    const file = path.join(folder.path, `${name}.json`);
    const run = {
      name,
      seed: 1,
      model: { path: path.join(folder.path, "model") },
      dataset: { train: source, eval: source },
      agent: { name: "matheval_agent" },
      rollout: {
        tasksPerStep: 1,
        groupSize: 2,
        maxTurns: 6,
        maxContextTokens: MAX_CONTEXT_TOKENS,
        sampling: { temperature: 1, maxNewTokens: 512 },
      },
      judge: [{ kind: "math" }],
      trainer: { steps: 1, optimizer: { kind: "adamw", learningRate: 0.001 } },
    };
    await writeFile(file, JSON.stringify(run));
    return file;
  }

  test("are played with their tools to the end that their file names, and scored by the judge math", async () => {
    const { port } = server.address() as AddressInfo;
    const { code, output } = await stack.hone(
      "eval",
      runFile,
      "--endpoint",
      `http://127.0.0.1:${port}/v1`,
      "--model",
      "solver",
      "--json",
    );
    assert.equal(code, 0, `${output}\n${await stack.describe()}`);
    const report = JSON.parse(output.slice(output.indexOf("\n{\n"), output.lastIndexOf("\n}") + 2)) as {
      evaluations: { rollouts: number; metrics: Record<string, number> }[];
    };
    const [evaluation] = report.evaluations;
    assert.equal(evaluation?.rollouts, ROWS.length);
    const { metrics } = evaluation;
    // The one that only guesses is never right, and ends after the three answers that the file allows.
    assert.ok(Math.abs(Number(metrics["reward/mean"]) - 2 / 3) < 1e-9, JSON.stringify(metrics));
    assert.equal(metrics["outcome/infra_failed"], 0);
    assert.equal(metrics["outcome/agent_failed"], 0);
    const guesses = asked.filter(({ messages }) =>
      messages.some(({ content }) => content?.startsWith("Guess") === true),
    );
    assert.equal(guesses.length, 3);
    assert.deepEqual(
      new Set(asked.flatMap(({ tools }) => tools)),
      new Set(["mathlighteval_reward", "execute_python"]),
    );
  });

  test("a file of theirs with an unknown key is refused with the key that was meant", async () => {
    const { code, output } = await stack.hone("validate", await writeRun("wrong", "wrong_agent.json"));
    assert.equal(code, 1, output);
    assert.match(output, /max_ai_message_turns.*did you mean "max_ai_message_turn"/s);
  });
});
