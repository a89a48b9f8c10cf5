/** A description of the tools as text, for models whose chat template does not show tools. */

import type { ChatMessage, ChatTool } from "@hone/tokenizer";

const HEADER = [
  "You can call these tools. Each line between <tools> and </tools> describes one as JSON schema.",
  "<tools>",
];
const FOOTER = [
  "</tools>",
  "To call a tool, write a JSON object with its name and its arguments between <tool_call> and </tool_call>:",
  "<tool_call>",
  '{"name": <name>, "arguments": <object of arguments>}',
  "</tool_call>",
];

/** Adds a description of the tools to the end of the system message, or adds a system message if there is none. */
export function withToolPrompt(
  messages: readonly ChatMessage[],
  tools: readonly ChatTool[],
): readonly ChatMessage[] {
  const description = [...HEADER, ...tools.map((tool) => JSON.stringify(tool)), ...FOOTER].join("\n");
  const [first, ...rest] = messages;
  return first?.role === "system"
    ? [{ ...first, content: `${first.content}\n\n${description}` }, ...rest]
    : [{ role: "system", content: description }, ...messages];
}
