/** Turns a conversation into messages for an OpenAI-compatible API, and its answers into what the run's model would write. */

import type { ChatMessage, ChatRenderer, ChatTool, ChatToolCall } from "@hone/tokenizer";

/** An answer of such an API. */
export interface EndpointAnswer {
  readonly content: string;
  readonly calls: readonly EndpointCall[];
  /** The answer ended because it reached the limit of tokens. */
  readonly isCutOff: boolean;
}

export interface EndpointCall {
  readonly name: string;
  /** The arguments as the model wrote them: JSON, or an attempt at it. */
  readonly argumentsText: string;
}

/** @param tools the tools that are sent to the API; without any, calls and the answers of tools are sent as plain text. */
export function toEndpointMessages(messages: readonly ChatMessage[], tools: readonly ChatTool[]): unknown[] {
  return messages.map(({ role, content, tool_calls: calls, tool_call_id: id, written }) => {
    if (tools.length === 0) {
      if (role === "tool") return { role: "user", content };
      return { role, content: calls === undefined ? content : (written ?? content) };
    }
    return {
      role,
      content,
      ...(calls !== undefined && { tool_calls: calls.map(toEndpointCall) }),
      ...(id !== undefined && { tool_call_id: id }),
    };
  });
}

function toEndpointCall({ id, type, function: { name, arguments: args } }: ChatToolCall): unknown {
  return { id, type, function: { name, arguments: JSON.stringify(args) } };
}

/**
 * The text of an answer, with its calls in the format of the chat template: the agent's model would write them like this, and
 * this is how they are read again. Calls whose arguments are not a JSON object, or that the template cannot show, are written
 * as `<tool_call>` blocks.
 */
export function writeAnswer(
  { content, calls }: EndpointAnswer,
  messages: readonly ChatMessage[],
  tools: readonly ChatTool[],
  renderer: ChatRenderer,
): string {
  if (calls.length === 0) return content;
  const parsed = calls.map(parseCall);
  const known = parsed.filter((call) => call !== undefined);
  if (known.length === calls.length && tools.length > 0) {
    const answer: ChatMessage = { role: "assistant", content, tool_calls: known };
    const shown = renderer.render(messages, tools).text;
    const ended = renderer.renderEnded([...messages, answer], tools).text;
    const { eosTokenId } = renderer.tokenizer;
    const end = eosTokenId === undefined ? undefined : renderer.tokenizer.tokenOf(eosTokenId);
    if (ended.startsWith(shown)) return withoutEnd(ended.slice(shown.length), end);
  }
  const blocks = calls.map(
    ({ name, argumentsText }) =>
      `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${argumentsText}}\n</tool_call>`,
  );
  return [content, ...blocks].filter((text) => text !== "").join("\n");
}

function parseCall({ name, argumentsText }: EndpointCall, index: number): ChatToolCall | undefined {
  try {
    const args: unknown = JSON.parse(argumentsText === "" ? "{}" : argumentsText);
    if (typeof args !== "object" || args === null || Array.isArray(args)) return undefined;
    return { id: `call${index}`, type: "function", function: { name, arguments: { ...args } } };
  } catch {
    return undefined; // The agent then gets the error that any unreadable call of its model gets.
  }
}

/** The end of the turn is a separate token, and what the template puts after it belongs to the next prompt. */
function withoutEnd(text: string, end: string | undefined): string {
  const at = end === undefined ? -1 : text.lastIndexOf(end);
  return at < 0 ? text.trimEnd() : text.slice(0, at);
}
