/** The agent `react`: LangGraph's prebuilt agent, unchanged, with the tools of its configuration. */

import {
  type AgentDefinition,
  buildToolbox,
  promptOfRow,
  rolloutOf,
  type Toolbox,
  toLangChainMessages,
  toLangChainTools,
  toolConfigShape,
  toolsOf,
} from "@hone/agents";
import { type BaseMessage, SystemMessage } from "@langchain/core/messages";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { z } from "zod";

export const reactConfigSchema = z.strictObject({
  /** Placed first if the row's prompt has no system message; empty = none. */
  systemPrompt: z.string().default(""),
  ...toolConfigShape,
});
export type ReactConfig = z.output<typeof reactConfigSchema>;

interface ReactGraph {
  readonly graph: ReturnType<typeof buildGraph>;
  readonly toolbox: Toolbox;
}

/** An answer and its tools are two steps of the graph; the last answer is one. */
const STEPS_PER_TURN = 2;

export const reactAgent: AgentDefinition<ReactConfig, ReactGraph> = {
  configSchema: reactConfigSchema,
  needsEnvironment: false,
  needsRow: true,
  async buildGraph(config, context) {
    const toolbox = await buildToolbox(config, context);
    return { graph: buildGraph(config, toolbox), toolbox };
  },
  async run({ graph, toolbox }, rollout) {
    const tools = rollout.openTools(toolbox);
    const prompt = toLangChainMessages(promptOfRow(rollout.task));
    const { systemPrompt } = rollout.config;
    const needsSystem = systemPrompt !== "" && prompt[0]?.type !== "system";
    const messages = needsSystem ? [new SystemMessage(systemPrompt), ...prompt] : prompt;
    const result = await graph.invoke(
      { messages },
      // High enough that the limit of turns is reached first, which ends the rollout as truncated.
      { configurable: { rollout, tools }, recursionLimit: STEPS_PER_TURN * (rollout.maxTurns + 1) + 1 },
    );
    const answers = (result.messages as readonly BaseMessage[]).filter(({ type }) => type === "ai");
    const isCut = answers.at(-1)?.response_metadata.finishReason === "length";
    return { isTruncated: isCut, metrics: { num_turns: answers.length } };
  },
};

function buildGraph({ toolCallFormat }: ReactConfig, toolbox: Toolbox) {
  const tools = toLangChainTools(toolbox);
  return createReactAgent({
    // The graph serves all rollouts, but each has a model of its own.
    llm: async (_state, runtime) => {
      const { model } = rolloutOf<ReactConfig>(runtime);
      const formatted = toolCallFormat === "auto" ? model : model.withToolCallFormat(toolCallFormat);
      const allowed = toolsOf(runtime).entries.map(({ tool }) => tool.name);
      const shown = tools.filter(({ name }) => allowed.includes(name));
      return shown.length === 0 ? formatted : formatted.bindTools(shown);
    },
    tools,
  });
}
