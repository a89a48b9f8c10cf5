/** Parameters of OpenAI's responses API. */

import { ApiRequestError } from "@hone/service-kit";
import type { ChatMessage, ChatTool, ChatToolCall } from "@hone/tokenizer";
import { z } from "zod";
import type { ResponseFormat } from "../../domain/sessions/response-format.ts";
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
  tokenCount,
  toolName,
} from "./parameters.ts";
import { argumentsOfJson } from "./tool-arguments.ts";

/** The API's limits of the metadata that the answer returns. */
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
/** Messages may omit their type. */
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
  type: z.literal("function", "only function: tools that run on the provider's servers do not exist here"),
  name: toolName,
  description,
  parameters: jsonObject.nullish().transform((value) => value ?? { type: "object", properties: {} }),
  strict: optional(z.boolean()),
});

const toolChoiceSchema = z.union(
  [z.enum(["none", "auto", "required"]), z.object({ type: z.literal("function"), name: toolName })],
  "only none, auto, required or a function by its name",
);

const formatSchema = z.discriminatedUnion(
  "type",
  [
    z.object({ type: z.literal("text") }),
    z.object({ type: z.literal("json_object") }),
    z.object({
      type: z.literal("json_schema"),
      name: z.string(),
      schema: jsonObject,
      description: optional(z.string()),
      strict: optional(z.boolean()),
    }),
  ],
  "only text, json_object and json_schema: a format is told to the model in words",
);

/** Unknown parameters are ignored, as clients send those of other servers. */
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
      format: optional(formatSchema),
    }),
  ),
  top_logprobs: optional(z.literal(0, "only 0: answers in this API have no logprobs here")),
  truncation: optional(z.literal("disabled", "only disabled: a full context ends the rollout")),
  background: optional(z.literal(false, "only false: the request waits while its answer is generated")),
  conversation: refused("only null: use previous_response_id to continue a conversation"),
  prompt: refused("only null: there are no stored prompts"),
});

export type ResponsesRequest = z.output<typeof responsesSchema>;
type Item = z.output<typeof itemSchema>;

/** @param before the earlier messages that the input continues. */
export function requestOf(asked: ResponsesRequest, before: readonly ChatMessage[]): SessionRequest {
  const { instructions, input, tool_choice: choice = "auto" } = asked;
  const tools = (asked.tools ?? []).map(toolOf);
  const toolChoice = typeof choice === "string" ? choice : { name: choice.name };
  checkToolChoice(toolChoice, tools);
  return {
    model: asked.model,
    messages: [
      ...(instructions === undefined ? [] : [{ role: "system" as const, content: instructions }]),
      ...before,
      ...(typeof input === "string" ? [{ role: "user" as const, content: input }] : messagesOf(input)),
    ],
    tools,
    toolChoice,
    responseFormat: formatOf(asked.text?.format),
    numAnswers: 1,
    maxNewTokens: asked.max_output_tokens,
    sampling: { temperature: asked.temperature, topP: asked.top_p },
    stopTexts: [],
    seed: undefined,
    isStreamed: asked.stream === true,
  };
}

function formatOf(asked: z.output<typeof formatSchema> | undefined): ResponseFormat | undefined {
  if (asked === undefined || asked.type === "text") return undefined;
  if (asked.type === "json_object") return { schema: undefined, description: "" };
  return schemaFormat(asked.schema, asked.description, "text.format.schema");
}

function messagesOf(items: readonly Item[]): ChatMessage[] {
  const messages: ChatMessage[] = [];
  for (const [index, item] of items.entries()) {
    switch (item.type) {
      case "message":
        // `developer` is the newer name of the system role, which templates do not know.
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

/** Adds a call; after an answer's text or other calls it belongs to the same answer. */
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

/** @throws {ApiRequestError} with the code that clients of this API expect. */
export function refuseUnknownResponse(id: string): never {
  throw new ApiRequestError(
    `previous_response_id is ${JSON.stringify(id.slice(0, 200))}, which is not an answer of this session`,
    { param: "previous_response_id", apiCode: "previous_response_not_found" },
  );
}
