/**
 * Reads an action from a model's answer, and writes an answer that holds one.
 *
 * All readers take time that is linear in the length of the answer, whatever the model wrote. The tags are read by ROLL's
 * rules: the first match counts, control tokens that a model wrote as text are removed before.
 */

import { ActionFormat, type ActionTool } from "@hone/agents";
import { InvalidInputError } from "@hone/core";
import type { AIMessage } from "@langchain/core/messages";

/** Control tokens that a model may have written as text. */
const CONTROL_TOKENS = /<\|im_(?:start|end)\|>/g;
const FENCE = "```";
const THOUGHTS_END = /<\/think>\s*<answer>/g;

/** The action in an answer; the empty text where there is none. */
export function readAction(
  answer: Pick<AIMessage, "text" | "tool_calls">,
  format: ActionFormat,
  tools: readonly ActionTool[],
): string {
  switch (format) {
    case ActionFormat.answer:
      return answerIn(answer.text.replaceAll(CONTROL_TOKENS, ""), 0);
    case ActionFormat.thinkAnswer:
      return answerAfterThoughts(answer.text.replaceAll(CONTROL_TOKENS, ""));
    case ActionFormat.codeBlock:
      return lastBlockOf(answer.text);
    case ActionFormat.text:
      return answer.text.trim();
    case ActionFormat.toolCall: {
      const [call] = answer.tool_calls ?? [];
      const tool = tools.find(({ name }) => name === call?.name);
      return (call === undefined ? undefined : tool?.actionOf(call.args)) ?? "";
    }
    default:
      return format satisfies never;
  }
}

/**
 * Writes the answer from which {@link readAction} reads this action.
 * @throws {InvalidInputError} when no tool takes the action.
 */
export function writeAction(action: string, format: ActionFormat, tools: readonly ActionTool[]): string {
  switch (format) {
    case ActionFormat.answer:
      return `<answer>${action}</answer>`;
    case ActionFormat.thinkAnswer:
      return `<think></think><answer>${action}</answer>`;
    case ActionFormat.codeBlock:
      return `${FENCE}${action}${FENCE}`;
    case ActionFormat.text:
      return action;
    case ActionFormat.toolCall:
      return toolCallOf(action, tools);
    default:
      return format satisfies never;
  }
}

/** The content of the first `<answer>…</answer>` that begins at `from` or later. */
function answerIn(text: string, from: number): string {
  const begin = text.indexOf("<answer>", from);
  if (begin < 0) return "";
  const content = begin + "<answer>".length;
  const end = text.indexOf("</answer>", content);
  return end < 0 ? "" : text.slice(content, end).trim();
}

/** The first `<think>` counts: an answer that stands before it, or not right after its end, does not. */
function answerAfterThoughts(text: string): string {
  const begin = text.indexOf("<think>");
  if (begin < 0) return "";
  THOUGHTS_END.lastIndex = begin + "<think>".length;
  const match = THOUGHTS_END.exec(text);
  return match === null ? "" : answerIn(text, match.index + "</think>".length);
}

/** What stands between the last two fences that belong together. */
function lastBlockOf(text: string): string {
  const parts = text.split(FENCE);
  // Parts at odd places are inside of a block; the last part is never closed.
  const last = parts.length % 2 === 0 ? parts.length - 3 : parts.length - 2;
  return last < 1 ? "" : parts[last]!.trim();
}

/** In the form of Hermes and Qwen, the only one that scripted policies write. */
function toolCallOf(action: string, tools: readonly ActionTool[]): string {
  for (const { name, argumentsOf } of tools) {
    const args = argumentsOf(action);
    if (args !== undefined) {
      return `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
    }
  }
  throw new InvalidInputError(`Cannot write the action "${action}" as a tool call: no tool takes it`, {
    path: "agent.config.actionFormat",
    allowed: "a format in which the environment's actions can be written",
  });
}
