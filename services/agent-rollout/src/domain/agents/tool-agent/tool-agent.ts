/**
 * The agent `tool_agent`: the model answers and its tool calls are run, until an answer has no call or a limit is reached.
 *
 * G1: every call gets an answer; one that cannot be read or run gets the reason.
 * G2: the episode says why it ended: `metadata.endedBy` is one of {@link EndedBy}.
 */

import {
  type AgentDefinition,
  type AgentResult,
  type AgentRollout,
  type BuildContext,
  buildToolbox,
  promptOfRow,
  type RolloutTools,
  rolloutOf,
  type Toolbox,
  toChatToolCall,
  toLangChainMessages,
  toolConfigShape,
  toolsOf,
} from "@hone/agents";
import {
  type AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { entrypoint } from "@langchain/langgraph";
import { z } from "zod";

export const toolAgentConfigSchema = z.strictObject({
  /** Placed first if the row's prompt has no system message; empty = none. */
  systemPrompt: z.string().default(""),
  ...toolConfigShape,
});
export type ToolAgentConfig = z.output<typeof toolAgentConfigSchema>;

/** Why a rollout of this agent ended. */
export const EndedBy = {
  /** An answer had no calls. */
  answer: "answer",
  /** The limit of turns was reached. */
  turns: "turns",
  /** The conversation reached the agent's own limit of tokens. */
  tokens: "tokens",
  /** An answer was cut off at its limit of tokens. */
  length: "length",
  /** Too many consecutive answers had invalid calls only. */
  invalidCalls: "invalid_calls",
} as const;
export type EndedBy = (typeof EndedBy)[keyof typeof EndedBy];

/** Limits of the agent itself, beside those of the run. */
export interface ToolAgentLimits {
  /** Most answers of the model. */
  readonly maxTurns?: number | undefined;
  /** No further answer is asked for once the conversation has this many tokens. */
  readonly maxContextTokens?: number | undefined;
}

interface ToolAgentGraph {
  readonly graph: ReturnType<typeof buildGraph>;
  readonly toolbox: Toolbox;
}

export const toolAgent: AgentDefinition<ToolAgentConfig, ToolAgentGraph> = {
  configSchema: toolAgentConfigSchema,
  needsEnvironment: false,
  needsRow: true,
  buildGraph: (config, context) => buildToolAgent(config, context),
  run: runToolAgent,
};

export async function buildToolAgent(
  config: ToolAgentConfig,
  context: BuildContext,
  limits: ToolAgentLimits = {},
): Promise<ToolAgentGraph> {
  return { graph: buildGraph(config, limits), toolbox: await buildToolbox(config, context) };
}

export async function runToolAgent(
  { graph, toolbox }: ToolAgentGraph,
  rollout: AgentRollout<unknown>,
): Promise<AgentResult> {
  const tools = rollout.openTools(toolbox);
  const messages = toLangChainMessages(promptOfRow(rollout.task));
  const { endedBy, numTurns } = await graph.invoke(messages, { configurable: { rollout, tools } });
  return {
    isTruncated: endedBy === EndedBy.turns || endedBy === EndedBy.tokens || endedBy === EndedBy.length,
    metrics: { num_turns: numTurns },
    metadata: { endedBy },
  };
}

function buildGraph(
  { systemPrompt, maxInvalidAnswers, toolCallFormat }: ToolAgentConfig,
  { maxTurns = Number.POSITIVE_INFINITY, maxContextTokens = Number.POSITIVE_INFINITY }: ToolAgentLimits,
) {
  return entrypoint("tool_agent", async (prompt: BaseMessage[], run) => {
    const rollout = rolloutOf<ToolAgentConfig>(run);
    const tools = toolsOf(run);
    const base = toolCallFormat === "auto" ? rollout.model : rollout.model.withToolCallFormat(toolCallFormat);
    const chatTools = tools.entries.map(({ chatTool }) => chatTool);
    const model = chatTools.length === 0 ? base : base.bindTools(chatTools);
    const needsSystem = systemPrompt !== "" && prompt[0]?.type !== "system";
    let messages = needsSystem ? [new SystemMessage(systemPrompt), ...prompt] : prompt;
    let numInvalid = 0;
    for (let turn = 1; ; turn++) {
      const answer = await model.invoke(messages, run);
      const ended = (endedBy: EndedBy) => ({ endedBy, numTurns: turn });
      const { tool_calls: calls = [], invalid_tool_calls: unreadable = [] } = answer;
      // Checked first, as an answer that was cut off may end within a call.
      if (answer.response_metadata.finishReason === "length") return ended(EndedBy.length);
      if (calls.length === 0 && unreadable.length === 0) return ended(EndedBy.answer);
      // The agent's own limits leave the last calls unanswered, as there is no further answer that could use them.
      if (turn >= maxTurns) return ended(EndedBy.turns);
      if (Number(answer.response_metadata.contextTokens) >= maxContextTokens) return ended(EndedBy.tokens);
      const replies = await replyTo(answer, tools);
      numInvalid = replies.isValid ? 0 : numInvalid + 1;
      if (numInvalid >= maxInvalidAnswers) return ended(EndedBy.invalidCalls);
      if (turn >= rollout.maxTurns) return ended(EndedBy.turns);
      messages = [...messages, answer, ...replies.messages];
    }
  });
}

/** Runs the calls of an answer. @returns the messages for the model, and whether any of its calls was valid. */
async function replyTo(
  { tool_calls: calls = [], invalid_tool_calls: unreadable = [] }: AIMessageChunk,
  tools: RolloutTools,
): Promise<{ messages: BaseMessage[]; isValid: boolean }> {
  const replies = await tools.answerAll(calls.map(toChatToolCall));
  tools.countUnreadable(unreadable.length);
  const messages: BaseMessage[] = replies.map(
    ({ id, name, text }) => new ToolMessage({ content: text, tool_call_id: id, name }),
  );
  const complaints = unreadable.map(({ error }) => `Invalid tool call: what you wrote ${error}.`);
  // There is no call that a tool message could answer, so these errors are a user message.
  if (complaints.length > 0) messages.push(new HumanMessage(complaints.join("\n")));
  return { messages, isValid: replies.some(({ kind }) => kind === "answered" || kind === "failed") };
}
