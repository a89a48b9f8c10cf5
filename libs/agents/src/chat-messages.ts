/** Messages in LangChain's classes, and in the shape that chat templates read. */

import { unreachable } from "@hone/core";
import type { ChatMessage } from "@hone/tokenizer";
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { UnsupportedMessageError } from "./errors.ts";

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
  if (typeof message.content === "string") return { role, content: message.content };
  const parts = message.content.map((part) => {
    if (part.type === "text" && typeof part.text === "string") return part.text;
    throw new UnsupportedMessageError(`content of type "${part.type}"`);
  });
  return { role, content: parts.join("") };
}

/** The messages of a row, for a LangGraph agent. */
export function toLangChainMessages(messages: readonly ChatMessage[]): BaseMessage[] {
  return messages.map(toLangChainMessage);
}

function toLangChainMessage({ role, content }: ChatMessage): BaseMessage {
  switch (role) {
    case "system":
      return new SystemMessage(content);
    case "user":
      return new HumanMessage(content);
    case "assistant":
      return new AIMessage(content);
    case "tool":
      return new ToolMessage({ content, tool_call_id: "" });
    default:
      return unreachable(role);
  }
}
