/** For tests: a project folder with its own agent, tool, environment and judge, and a small model. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryFolder } from "@hone/testing";
import { chatmlTokenizerFiles, TOOL_TEMPLATE } from "@hone/tokenizer/testing";
import { findProject, type Project } from "../project.ts";

export interface TestProject extends AsyncDisposable {
  readonly project: Project;
  readonly runFile: string;
  /** Writes another run file: the first one with these sections replaced. */
  writeRun(name: string, changes: Readonly<Record<string, unknown>>): Promise<string>;
  writeFile(name: string, text: string): Promise<string>;
}

/** Lines at which tests set breakpoints. */
export const AGENT_LINE = "const answer = await model.invoke(messages, run);";
export const TOOL_LINE = "const sum = Number(a) + Number(b);";
export const JUDGE_LINE = "const isRight = solution.includes(String(groundTruth));";

export const AGENT = `
import { buildToolbox, defineAgent, defineEnvironment, defineTool, promptOfRow, toLangChainMessages, toLangChainTools, toolConfigShape } from "@hone/agents";
import { HumanMessage, ToolMessage } from ${JSON.stringify("@langchain/core/messages")};
import { z } from "zod";

export const tools = {
  add: defineTool({
    name: "add",
    description: "Adds",
    parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
    call({ a, b }) {
      ${TOOL_LINE}
      return String(sum);
    },
  }),
};

export const environments = {
  coin: defineEnvironment({
    configSchema: z.strictObject({ sides: z.number().int().min(2).default(2) }),
    create: ({ sides }: { sides: number }) => ({
      reset: (seed: number) => ({ observation: "Guess.", info: { side: seed % sides } }),
      step: (answer: string) => ({ observation: "Over.", info: {}, reward: answer === "0" ? 1 : 0, terminated: true, truncated: false }),
      metrics: () => ({ tossed: 1 }),
      legalActions: () => ["0", "1"],
    }),
  }),
};

const Config = z.strictObject({ ...toolConfigShape, tools: toolConfigShape.tools.unwrap().default(["add"]) });

export const agents = {
  adder: defineAgent({
    configSchema: Config,
    needsEnvironment: false,
    needsRow: true,
    buildGraph: (config: z.output<typeof Config>, context) => buildToolbox(config, context),
    async run(toolbox, { model: plain, task, openTools, signal }) {
      const own = openTools(toolbox);
      const model = plain.bindTools(toLangChainTools(toolbox));
      const run = { signal };
      const messages = toLangChainMessages(promptOfRow(task));
      for (;;) {
        ${AGENT_LINE}
        messages.push(answer);
        const calls = answer.tool_calls ?? [];
        if (calls.length === 0) return { metadata: { answer: answer.text } };
        if (answer.text.includes("crash")) throw new RangeError("the agent broke");
        const replies = await own.answerAll(calls.map(({ id, name, args }) => ({ id: id ?? "", type: "function" as const, function: { name, arguments: args } })));
        messages.push(...replies.map(({ id, text }) => new ToolMessage({ content: text, tool_call_id: id })));
      }
    },
  }),
  tosser: defineAgent({
    configSchema: z.strictObject({}),
    needsEnvironment: true,
    buildGraph: () => undefined,
    async run(_graph, { model, environment }) {
      if (environment === undefined) throw new TypeError("no environment");
      const { observation } = await environment.reset();
      const answer = await model.invoke([new HumanMessage(observation)]);
      await environment.step(answer.text);
      return {};
    },
  }),
};
`;

const JUDGE = `
export function computeScore({ solution, groundTruth }: { solution: string; groundTruth: unknown }) {
  ${JUDGE_LINE}
  return { score: isRight ? 1 : 0, reason: isRight ? "it says the sum" : "it does not say the sum" };
}
`;

const ROWS = [
  { prompt: "2 + 3?", reward_model: { ground_truth: "5" } },
  { prompt: [{ role: "user", content: "4 + 4?" }], reward_model: { ground_truth: "8" } },
];

const RUN = {
  name: "sums",
  seed: 5,
  model: {
    init: {
      architecture: "qwen3",
      hiddenSize: 16,
      numLayers: 1,
      numHeads: 2,
      maxPositions: 1_024,
      tokenizer: "tokenizer",
    },
  },
  dataset: { train: { source: "jsonl", path: "rows.jsonl" } },
  agent: { name: "adder", modules: ["agent.ts"] },
  rollout: {
    tasksPerStep: 1,
    groupSize: 2,
    maxTurns: 3,
    maxContextTokens: 900,
    sampling: { maxNewTokens: 120 },
  },
  judge: [{ kind: "module", path: "judge.ts" }],
  trainer: { steps: 1, optimizer: { kind: "adamw", learningRate: 0.001 } },
};

/** A model's answer that calls the tool. */
export const CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n</tool_call>';

export async function testProject(): Promise<TestProject> {
  const folder = await temporaryFolder("debug");
  const write = async (name: string, text: string) => {
    const file = join(folder.path, name);
    await writeFile(file, text);
    return file;
  };
  const writeRun = (name: string, changes: Readonly<Record<string, unknown>>) =>
    write(name, JSON.stringify({ ...RUN, ...changes }));
  await mkdir(join(folder.path, "tokenizer"));
  for (const [name, text] of Object.entries(chatmlTokenizerFiles(TOOL_TEMPLATE))) {
    if (name !== "generation_config.json") await write(join("tokenizer", name), text);
  }
  await write("agent.ts", AGENT);
  await write("judge.ts", JUDGE);
  await write("rows.jsonl", ROWS.map((row) => `${JSON.stringify(row)}\n`).join(""));
  await write("answers.yaml", JSON.stringify([CALL, "It is 5."]));
  return {
    project: findProject({ HONE_FILES: folder.path, HONE_STATE_DIR: join(folder.path, "state") }),
    runFile: await writeRun("run.json", {}),
    writeRun,
    writeFile: write,
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}
