/** The messages of a turn as a chat: thoughts folded, tool calls and their results as cards, observations as they were drawn. */

import type { ChatMessage, ChatPart } from "../../api-types.ts";
import { type Child, h } from "../../dom.ts";
import { count } from "../../format.ts";
import { collapsedText } from "./collapsed-text.ts";

const ROLE_NAMES: Readonly<Record<string, string>> = {
  system: "System",
  user: "User",
  assistant: "Model",
  tool: "Tool",
};

export function chatMessages(messages: readonly ChatMessage[]): HTMLElement {
  return h("div", { class: "chat" }, messages.map(messageOf));
}

function messageOf({ role, parts }: ChatMessage): HTMLElement {
  const isEnvironment = role === "user" && parts.some(({ kind }) => kind === "observation");
  const isTool = role === "user" && parts.length > 0 && parts.every(({ kind }) => kind === "result");
  const name = isEnvironment ? "Environment" : isTool ? "Tool" : (ROLE_NAMES[role] ?? role);
  return h(
    "article",
    { class: "chat-message", data: { role: isTool ? "tool" : role } },
    h("h4", { class: "chat-role" }, name),
    parts.length === 0 ? h("p", { class: "faint small" }, "an empty answer") : parts.map(partOf),
  );
}

function partOf(part: ChatPart): Child {
  switch (part.kind) {
    case "text":
      return collapsedText(part.text.trim(), "chat-text");
    case "observation":
      return collapsedText(part.text.replace(/^\n+|\s+$/g, ""), "chat-observation");
    case "thought":
      return h(
        "details",
        { class: "chat-thought" },
        h("summary", {}, "Thoughts", h("span", { class: "faint" }, ` ${count(part.text.length)} characters`)),
        collapsedText(part.text, "chat-text"),
      );
    case "call":
      return card(
        "call",
        [h("span", { class: "faint" }, "calls "), h("code", {}, part.name)],
        part.arguments,
      );
    case "invalid_call":
      return card("invalid", `A call that cannot be read: it ${part.reason}`, part.text);
    case "result":
      return card("result", "Result", part.text);
  }
}

function card(kind: string, title: Child, text: string): HTMLElement {
  return h(
    "section",
    { class: "chat-card", data: { kind } },
    h("h5", { class: "chat-card-title" }, title),
    collapsedText(text, "chat-code"),
  );
}
