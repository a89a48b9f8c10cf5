/** Converts messages between LangChain's classes and the form that chat templates read. */

import { unreachable } from "@hone/core";
import type { ChatMessage, ChatToolCall } from "@hone/tokenizer";
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { UnsupportedMessageError } from "../errors.ts";

const ROLES: Readonly<Record<string, ChatMessage["role"]>> = {
  system: "system",
  human: "user",
  ai: "assistant",
  tool: "tool",
};

/** @throws {UnsupportedMessageError} for a role or a content that is not text. */
export function toChatMessage(message: BaseMessage): ChatMessage {
  const role = ROLES[message.type];
  if (role === undefined) throw new UnsupportedMessageError(`messages of type "${message.type}"`);
  const content = textOf(message);
  if (AIMessage.isInstance(message) && message.tool_calls !== undefined && message.tool_calls.length > 0) {
    return { role, content, tool_calls: message.tool_calls.map(toChatToolCall) };
  }
  if (!ToolMessage.isInstance(message)) return { role, content };
  const { tool_call_id: id, name } = message;
  return { role, content, ...(id !== "" && { tool_call_id: id }), ...(name !== undefined && { name }) };
}

function textOf({ content }: BaseMessage): string {
  if (typeof content === "string") return content;
  const parts = content.map((part) => {
    if (part.type === "text" && typeof part.text === "string") return part.text;
    // A call is also in the message's list of calls.
    if (part.type === "tool_call" || part.type === "tool_use") return "";
    throw new UnsupportedMessageError(`content of type "${part.type}"`);
  });
  return parts.join("");
}

/** A call in the form that chat templates read. */
export function toChatToolCall(call: {
  readonly id?: string | undefined;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}): ChatToolCall {
  return { id: call.id ?? "", type: "function", function: { name: call.name, arguments: call.args } };
}

/** The messages of a row, for a LangGraph agent. */
export function toLangChainMessages(messages: readonly ChatMessage[]): BaseMessage[] {
  return messages.map(toLangChainMessage);
}

function toLangChainMessage({ role, content, tool_calls, tool_call_id, name }: ChatMessage): BaseMessage {
  switch (role) {
    case "system":
      return new SystemMessage(content);
    case "user":
      return new HumanMessage(content);
    case "assistant":
      return new AIMessage({ content, tool_calls: (tool_calls ?? []).map(toLangChainCall) });
    case "tool":
      return new ToolMessage({
        content,
        tool_call_id: tool_call_id ?? "",
        ...(name !== undefined && { name }),
      });
    default:
      return unreachable(role);
  }
}

/** A call in LangChain's form. */
export function toLangChainCall({ id, function: { name, arguments: args } }: ChatToolCall) {
  return { id, name, args: { ...args }, type: "tool_call" as const };
}
