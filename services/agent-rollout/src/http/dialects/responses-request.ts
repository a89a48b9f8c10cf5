/** Parameters of OpenAI's responses. */

import { ApiRequestError } from "@hone/service-kit";
import type { ChatMessage, ChatTool, ChatToolCall } from "@hone/tokenizer";
import { z } from "zod";
import type { SessionRequest } from "../../domain/sessions/session-call.ts";
import {
  description,
  jsonObject,
  MAX_MESSAGES,
  MAX_TOOLS,
  modelName,
  optional,
  refused,
  tokenCount,
  toolName,
} from "./parameters.ts";
import { argumentsOfJson } from "./tool-arguments.ts";

/** What the API allows of notes that come back with the answer. */
const MAX_METADATA_KEY = 64;
const MAX_METADATA_VALUE = 512;

const textPart = z.object({
  type: z.literal(["input_text", "output_text"], "only text: the model reads no other content"),
  text: z.string(),
});
const content = z.union([
  z.string(),
  z.array(textPart).transform((parts) => parts.map(({ text }) => text).join("")),
]);

const messageItem = z.object({
  type: z.literal("message"),
  role: z.literal(["user", "assistant", "system", "developer"]),
  content,
});
const callItem = z.object({
  type: z.literal("function_call"),
  call_id: z.string().min(1),
  name: z.string().min(1),
  arguments: z.string(),
});
const outputItem = z.object({
  type: z.literal("function_call_output"),
  call_id: z.string().min(1),
  output: content,
});
/** Messages may leave their type out. */
const itemSchema = z.preprocess(
  (value) =>
    typeof value === "object" && value !== null && !("type" in value) ? { ...value, type: "message" } : value,
  z.discriminatedUnion(
    "type",
    [messageItem, callItem, outputItem],
    "only message, function_call and function_call_output: a session has no other items",
  ),
);

const toolSchema = z.object({
  type: z.literal("function", "only function: tools that run on the provider's servers are not here"),
  name: toolName,
  description,
  parameters: jsonObject.nullish().transform((value) => value ?? { type: "object", properties: {} }),
  strict: optional(z.boolean()),
});

const toolChoiceSchema = z.union([
  z.enum(["none", "auto", "required"]),
  z.object({ type: z.literal("function"), name: toolName }),
]);

/** Parameters that are not known here are left alone, as clients send those of other servers. */
export const responsesSchema = z.object({
  model: modelName,
  input: z.union([z.string(), z.array(itemSchema).min(1).max(MAX_MESSAGES)]),
  instructions: optional(z.string()),
  previous_response_id: optional(z.string()),
  tools: optional(z.array(toolSchema).max(MAX_TOOLS)),
  tool_choice: optional(toolChoiceSchema),
  parallel_tool_calls: optional(z.boolean()),
  max_output_tokens: optional(tokenCount),
  temperature: optional(z.number().min(0).max(2)),
  top_p: optional(z.number().min(0).max(1)),
  stream: optional(z.boolean()),
  store: optional(z.boolean()),
  metadata: optional(z.record(z.string().max(MAX_METADATA_KEY), z.string().max(MAX_METADATA_VALUE))),
  text: optional(
    z.object({
      format: optional(z.object({ type: z.literal("text", "only text: answers are not held to a schema") })),
    }),
  ),
  top_logprobs: optional(z.literal(0, "only 0: this API's answers tell no logprobs here")),
  truncation: optional(z.literal("disabled", "only disabled: a context that is full ends the rollout")),
  background: optional(z.literal(false, "only false: answers are made while their requests wait")),
  conversation: refused("only null: previous_response_id names what a request goes on from"),
  prompt: refused("only null: there are no stored prompts"),
});

export type ResponsesRequest = z.output<typeof responsesSchema>;
type Item = z.output<typeof itemSchema>;

/** @param before what the input goes on from. */
export function requestOf(asked: ResponsesRequest, before: readonly ChatMessage[]): SessionRequest {
  const { instructions, input, tool_choice: choice = "auto" } = asked;
  return {
    model: asked.model,
    messages: [
      ...(instructions === undefined ? [] : [{ role: "system" as const, content: instructions }]),
      ...before,
      ...(typeof input === "string" ? [{ role: "user" as const, content: input }] : messagesOf(input)),
    ],
    tools: (asked.tools ?? []).map(toolOf),
    toolChoice: typeof choice === "string" ? choice : { name: choice.name },
    maxNewTokens: asked.max_output_tokens,
    sampling: { temperature: asked.temperature, topP: asked.top_p },
    stopTexts: [],
    seed: undefined,
    isStreamed: asked.stream === true,
  };
}

function messagesOf(items: readonly Item[]): ChatMessage[] {
  const messages: ChatMessage[] = [];
  for (const [index, item] of items.entries()) {
    switch (item.type) {
      case "message":
        // The newer name of the system's role, which templates do not know.
        messages.push({ role: item.role === "developer" ? "system" : item.role, content: item.content });
        break;
      case "function_call":
        addCall(messages, callOf(item, `input.${index}.arguments`));
        break;
      case "function_call_output":
        messages.push({ role: "tool", content: item.output, tool_call_id: item.call_id });
        break;
    }
  }
  return messages;
}

/** Calls that follow an answer's text, or other calls, are of the same answer. */
function addCall(messages: ChatMessage[], call: ChatToolCall): void {
  const last = messages.at(-1);
  if (last?.role !== "assistant") {
    messages.push({ role: "assistant", content: "", tool_calls: [call] });
  } else {
    messages[messages.length - 1] = { ...last, tool_calls: [...(last.tool_calls ?? []), call] };
  }
}

function callOf(
  { call_id: id, name, arguments: json }: z.output<typeof callItem>,
  param: string,
): ChatToolCall {
  return { id, type: "function", function: { name, arguments: argumentsOfJson(json, param) } };
}

function toolOf({ name, description: says, parameters }: z.output<typeof toolSchema>): ChatTool {
  return { type: "function", function: { name, description: says, parameters } };
}

/** @throws {ApiRequestError} as a client of this API expects it. */
export function refuseUnknownResponse(id: string): never {
  throw new ApiRequestError(
    `Cannot answer as previous_response_id must name an answer that this session still has: current value is ${JSON.stringify(id.slice(0, 200))}`,
    { param: "previous_response_id", apiCode: "previous_response_not_found" },
  );
}
