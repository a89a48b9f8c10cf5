/** The files that `hone new agent` writes: an agent with a tool of its own, its test, rows and a run file. */

/** Names of agents: words in small letters. */
export const AGENT_NAME = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;

/** @param folder of the files, below the project folder. @returns texts by file name. */
export function agentFiles(name: string, folder: string): Readonly<Record<string, string>> {
  return {
    "agent.ts": AGENT.replaceAll("AGENT_NAME", name),
    "agent.test.ts": TEST.replaceAll("AGENT_NAME", name),
    "agent.yaml": "# The agent's own keys, those of configSchema in agent.ts.\nmaxToolAnswerTokens: 64\n",
    "rows.jsonl": rows(),
    "run.yaml": RUN.replaceAll("AGENT_NAME", name)
      .replaceAll("RUN_NAME", name.replaceAll("_", "-"))
      .replaceAll("FOLDER", folder.replaceAll("\\", "/")),
  };
}

const AGENT = `/** The agent \`AGENT_NAME\`: reverses words, with a tool that does it. */

import {
  type AgentRollout,
  buildToolbox,
  defineAgent,
  defineTool,
  promptOfRow,
  rolloutOf,
  toLangChainMessages,
  toLangChainTools,
  toolConfigShape,
} from "@hone/agents";
import { SystemMessage } from "@langchain/core/messages";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { z } from "zod";

const SYSTEM_PROMPT = "Reverse the word that you are given, letter by letter. Answer with the word alone.";

/** What the model may call. Its arguments are checked before it runs; what it throws is told to the model. */
const reverse = defineTool({
  name: "reverse",
  description: "Reverses a text",
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  call: ({ text }) => [...String(text)].reverse().join(""),
});

/** The keys of agent.yaml, with their defaults. */
const configSchema = z.strictObject({
  systemPrompt: z.string().default(SYSTEM_PROMPT),
  ...toolConfigShape,
  tools: toolConfigShape.tools.unwrap().default(["reverse"]),
});
type Config = z.output<typeof configSchema>;

const agent = defineAgent({
  configSchema,
  needsEnvironment: false,
  needsRow: true,
  // Once for each configuration: what belongs to one rollout comes with run().
  async buildGraph(config: Config, context) {
    const toolbox = await buildToolbox(config, context);
    const tools = toLangChainTools(toolbox);
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("agent", async ({ messages }, run) => {
        const model = rolloutOf<Config>(run).model.bindTools(tools);
        return { messages: [await model.invoke(messages, run)] };
      })
      .addNode("tools", new ToolNode(tools))
      .addEdge(START, "agent")
      .addConditionalEdges("agent", toolsCondition)
      .addEdge("tools", "agent")
      .compile();
    return { graph, toolbox };
  },
  async run({ graph, toolbox }, rollout: AgentRollout<Config>) {
    const tools = rollout.openTools(toolbox);
    const messages = [
      new SystemMessage(rollout.config.systemPrompt),
      ...toLangChainMessages(promptOfRow(rollout.task)),
    ];
    await graph.invoke({ messages }, { configurable: { rollout, tools }, signal: rollout.signal });
    return {};
  },
});

export const agents = { AGENT_NAME: agent };
export const tools = { reverse };
`;

const TEST = `import assert from "node:assert/strict";
import { test } from "node:test";
import { playAgent } from "@hone/agents/testing";
import { agents, tools } from "./agent.ts";

const row = { prompt: "lake" };
const CALL = '<tool_call>{"name": "reverse", "arguments": {"text": "lake"}}</tool_call>';

test("AGENT_NAME calls its tool and answers", async () => {
  const played = await playAgent(agents.AGENT_NAME, { row, tools, answers: [CALL, "ekal"] });
  assert.match(played.prompts[1] ?? "", /<tool_response>\\nekal\\n/);
  assert.equal(played.turns.at(-1)?.responseText, "ekal");
  // One training row, and every token of it is what the model was shown or wrote.
  assert.equal(played.samples.length, 1);
});

test("AGENT_NAME may answer without its tool", async () => {
  const played = await playAgent(agents.AGENT_NAME, { row, tools, answers: ["ekal"] });
  assert.equal(played.turns.length, 1);
});
`;

const WORDS = ["lake", "ice", "frozen", "goal", "hole", "north", "river", "stone"];

function rows(): string {
  return WORDS.map((word) => {
    const truth = [...word].reverse().join("");
    const row = {
      data_source: "words",
      prompt: [{ role: "user", content: word }],
      reward_model: { style: "rule", ground_truth: truth },
    };
    return `${JSON.stringify(row)}\n`;
  }).join("");
}

const RUN = `name: RUN_NAME
seed: 1
model: { path: HuggingFaceTB/SmolLM2-135M-Instruct }
dataset:
  train: { source: jsonl, path: FOLDER/rows.jsonl }
agent: { name: AGENT_NAME, modules: [FOLDER/agent.ts], configPath: FOLDER/agent.yaml }
rollout: { tasksPerStep: 4, groupSize: 4, maxTurns: 3, maxContextTokens: 1024, sampling: { maxNewTokens: 64 } }
judge: [{ kind: exact }]
trainer: { steps: 10, optimizer: { kind: adamw, learningRate: 0.00001 } }
`;
