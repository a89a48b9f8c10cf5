/** Parameters of Anthropic's messages API. */

import type { ChatMessage, ChatTool, ChatToolCall } from "@hone/tokenizer";
import { z } from "zod";
import type { SessionRequest } from "../../domain/sessions/session-call.ts";
import {
  checkToolChoice,
  description,
  jsonObject,
  MAX_MESSAGES,
  MAX_TOOLS,
  modelName,
  optional,
  refused,
  schemaFormat,
  stopText,
  tokenCount,
  toolName,
} from "./parameters.ts";

/** More than agents use. The limit matters, as each is searched for after every token. */
const MAX_STOP_SEQUENCES = 16;

const textBlock = z.object({
  type: z.literal("text", "only text: the model reads no other content"),
  text: z.string(),
});
const text = z.union([
  z.string(),
  z.array(textBlock).transform((blocks) => blocks.map((block) => block.text).join("")),
]);

const toolResult = z.object({
  type: z.literal("tool_result"),
  tool_use_id: z.string().min(1),
  content: text.nullish().transform((value) => value ?? ""),
});
const toolUse = z.object({
  type: z.literal("tool_use"),
  id: z.string().min(1),
  name: z.string().min(1),
  input: jsonObject,
});
const userBlocks = z.array(
  z.discriminatedUnion(
    "type",
    [textBlock, toolResult],
    "only text and tool_result: the model reads no other content",
  ),
);
const answerBlocks = z.array(
  z.discriminatedUnion("type", [textBlock, toolUse], "only text and tool_use: answers hold nothing else"),
);

const messageSchema = z.discriminatedUnion("role", [
  z.object({ role: z.literal("user"), content: z.union([z.string(), userBlocks]) }),
  z.object({ role: z.literal("assistant"), content: z.union([z.string(), answerBlocks]) }),
  z.object({ role: z.literal("system"), content: text }),
]);

const toolSchema = z.object({
  type: z
    .literal("custom", "only custom: tools that run on the provider's servers do not exist here")
    .nullish(),
  name: toolName,
  description,
  input_schema: jsonObject,
});

const toolChoiceSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal(["auto", "any", "none"]) }),
  z.object({ type: z.literal("tool"), name: toolName }),
]);

const formatSchema = z.object({
  type: z.literal("json_schema", "only json_schema: a format is told to the model in words"),
  schema: jsonObject,
});

/** Unknown parameters are ignored, as clients send those of other servers. */
export const messagesSchema = z.object({
  model: modelName,
  max_tokens: tokenCount,
  messages: z
    .array(messageSchema)
    .min(1)
    .max(MAX_MESSAGES)
    .refine(
      (messages) => messages.at(-1)?.role !== "assistant",
      "no assistant message at the end: continuing a started answer is not supported",
    ),
  system: optional(text),
  tools: optional(z.array(toolSchema).max(MAX_TOOLS)),
  tool_choice: optional(toolChoiceSchema),
  stop_sequences: optional(z.array(stopText).max(MAX_STOP_SEQUENCES)),
  temperature: optional(z.number().min(0).max(1)),
  top_p: optional(z.number().min(0).max(1)),
  top_k: optional(z.number().int().min(0)),
  stream: optional(z.boolean()),
  /** `adaptive` lets the model decide, and it may decide not to think. */
  thinking: optional(
    z.object({
      type: z.literal(
        ["disabled", "adaptive"],
        "only disabled or adaptive: a session cannot demand thinking",
      ),
    }),
  ),
  output_config: optional(z.object({ format: optional(formatSchema) })),
  /** The earlier name of `output_config.format`. */
  output_format: optional(formatSchema),
  mcp_servers: optional(
    z.array(z.unknown()).max(0, "only an empty list: the agent itself calls servers of tools"),
  ),
  container: refused("only null: there are no containers here"),
});

export type MessagesRequest = z.output<typeof messagesSchema>;
type Message = MessagesRequest["messages"][number];

export function requestOf(asked: MessagesRequest): SessionRequest {
  const { system, tool_choice: choice } = asked;
  const format = asked.output_config?.format ?? asked.output_format;
  const tools = (asked.tools ?? []).map(toolOf);
  const toolChoice = toolChoiceOf(choice);
  checkToolChoice(toolChoice, tools);
  return {
    model: asked.model,
    messages: [
      ...(system === undefined ? [] : [{ role: "system" as const, content: system }]),
      ...asked.messages.flatMap(chatMessagesOf),
    ],
    tools,
    toolChoice,
    responseFormat:
      format === undefined
        ? undefined
        : schemaFormat(format.schema, undefined, "output_config.format.schema"),
    numAnswers: 1,
    maxNewTokens: asked.max_tokens,
    sampling: { temperature: asked.temperature, topP: asked.top_p, topK: asked.top_k },
    stopTexts: asked.stop_sequences ?? [],
    seed: undefined,
    isStreamed: asked.stream === true,
  };
}

function chatMessagesOf(message: Message): ChatMessage[] {
  if (typeof message.content === "string") return [{ role: message.role, content: message.content }];
  return message.role === "assistant"
    ? [answerOf(message.content as z.output<typeof answerBlocks>)]
    : userMessagesOf(message.content as z.output<typeof userBlocks>);
}

/** Results of tools become messages of their own, at their places among the texts. */
function userMessagesOf(blocks: z.output<typeof userBlocks>): ChatMessage[] {
  const messages: ChatMessage[] = [];
  for (const block of blocks) {
    const last = messages.at(-1);
    if (block.type === "tool_result") {
      messages.push({ role: "tool", content: block.content, tool_call_id: block.tool_use_id });
    } else if (last?.role === "user") {
      messages[messages.length - 1] = { role: "user", content: last.content + block.text };
    } else {
      messages.push({ role: "user", content: block.text });
    }
  }
  return messages.length > 0 ? messages : [{ role: "user", content: "" }];
}

function answerOf(blocks: z.output<typeof answerBlocks>): ChatMessage {
  const content = blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
  const calls = blocks.flatMap((block): ChatToolCall[] =>
    block.type === "tool_use"
      ? [{ id: block.id, type: "function", function: { name: block.name, arguments: block.input } }]
      : [],
  );
  return { role: "assistant", content, ...(calls.length > 0 && { tool_calls: calls }) };
}

function toolOf({
  name,
  description: says,
  input_schema: parameters,
}: z.output<typeof toolSchema>): ChatTool {
  return { type: "function", function: { name, description: says, parameters } };
}

function toolChoiceOf(choice: MessagesRequest["tool_choice"]): SessionRequest["toolChoice"] {
  if (choice === undefined) return "auto";
  if (choice.type === "tool") return { name: choice.name };
  return choice.type === "any" ? "required" : choice.type;
}
