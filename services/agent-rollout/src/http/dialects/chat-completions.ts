/** OpenAI's chat completions: POST /v1/chat/completions. */

import { parseBody } from "@hone/service-kit";
import type { ChatMessage, ChatTool } from "@hone/tokenizer";
import { z } from "zod";
import type { ResponseFormat } from "../../domain/sessions/response-format.ts";
import {
  type ReplyCall,
  type ReplyEvent,
  ReplyFinish,
  type ReplyUsage,
  type SessionReply,
  type SessionRequest,
} from "../../domain/sessions/session-call.ts";
import type { Dialect, ReplyHead, ReplyWriter, ServerSentEvent } from "./dialect.ts";
import { openaiFailureBody } from "./openai-failure.ts";
import {
  answerCount,
  checkToolChoice,
  demandsBody,
  jsonObject,
  MAX_MESSAGES,
  MAX_TOOLS,
  modelName,
  optional,
  schemaFormat,
  stopText,
  tokenCount,
  toolName,
} from "./parameters.ts";
import { argumentsOfJson } from "./tool-arguments.ts";

/** The limit of the API's own service. */
const MAX_STOP_TEXTS = 4;

const textPart = z.object({
  type: z.literal("text", "only text: the model reads no other content"),
  text: z.string(),
});
const content = z.union([
  z.string(),
  z.array(textPart).transform((parts) => parts.map(({ text }) => text).join("")),
]);
const answerContent = z
  .union([
    z.string(),
    z
      .array(z.union([textPart, z.object({ type: z.literal("refusal"), refusal: z.string() })]))
      .transform((parts) => parts.map((part) => ("text" in part ? part.text : part.refusal)).join("")),
  ])
  .nullish()
  .transform((value) => value ?? "");

const messageSchema = z.discriminatedUnion("role", [
  z.object({ role: z.literal(["system", "developer", "user"]), content }),
  z.object({ role: z.literal("tool"), content, tool_call_id: z.string().min(1), name: optional(z.string()) }),
  z.object({
    role: z.literal("assistant"),
    content: answerContent,
    tool_calls: optional(
      z.array(
        z.object({
          id: z.string(),
          type: z.literal("function", "only functions").default("function"),
          function: z.object({ name: z.string().min(1), arguments: z.string() }),
        }),
      ),
    ),
  }),
]);

const toolSchema = z.object({
  type: z.literal("function", "only functions"),
  function: z.object({
    name: toolName,
    description: optional(z.string()),
    parameters: optional(jsonObject),
  }),
});

const toolChoiceSchema = z.union(
  [
    z.enum(["none", "auto", "required"]),
    z.object({ type: z.literal("function"), function: z.object({ name: z.string() }) }),
  ],
  "only none, auto, required or a function by its name",
);

const responseFormatSchema = z.discriminatedUnion(
  "type",
  [
    z.object({ type: z.literal("text") }),
    z.object({ type: z.literal("json_object") }),
    z.object({
      type: z.literal("json_schema"),
      json_schema: z.object({ schema: optional(jsonObject), description: optional(z.string()) }),
    }),
  ],
  "only text, json_object and json_schema: a format is told to the model in words",
);

/** Unknown parameters are ignored, as clients send those of other servers. */
const requestSchema = z.object({
  model: modelName,
  messages: z.array(messageSchema).min(1).max(MAX_MESSAGES),
  tools: optional(z.array(toolSchema).max(MAX_TOOLS)),
  tool_choice: optional(toolChoiceSchema),
  max_tokens: optional(tokenCount),
  max_completion_tokens: optional(tokenCount),
  temperature: optional(z.number().min(0).max(2)),
  top_p: optional(z.number().min(0).max(1)),
  top_k: optional(z.number().int().min(-1)),
  seed: optional(z.number().refine(Number.isSafeInteger, "a safe integer")),
  stop: optional(z.union([stopText, z.array(stopText).max(MAX_STOP_TEXTS)])),
  stream: optional(z.boolean()),
  stream_options: optional(z.object({ include_usage: optional(z.boolean()) })),
  n: optional(answerCount),
  response_format: optional(responseFormatSchema),
  logprobs: optional(z.boolean()),
  /** As in vLLM: the answer contains its token ids and those of its prompt. */
  return_token_ids: optional(z.boolean()),
});
type ChatRequest = z.output<typeof requestSchema>;

export const CHAT_COMPLETIONS: Dialect = {
  path: "/v1/chat/completions",
  parse(body) {
    const asked = parseBody(requestSchema, body);
    return { request: requestOf(asked), writer: (head) => writerOf(asked, head) };
  },
  failureBody: openaiFailureBody,
};

function requestOf(asked: ChatRequest): SessionRequest {
  const { stop = [], tool_choice: choice = "auto", top_k: topK } = asked;
  const tools = (asked.tools ?? []).map(toolOf);
  const toolChoice = typeof choice === "string" ? choice : { name: choice.function.name };
  checkToolChoice(toolChoice, tools);
  return {
    model: asked.model,
    messages: asked.messages.map(messageOf),
    tools,
    toolChoice,
    responseFormat: formatOf(asked.response_format),
    numAnswers: asked.n ?? 1,
    maxNewTokens: asked.max_completion_tokens ?? asked.max_tokens,
    sampling: {
      temperature: asked.temperature,
      topP: asked.top_p,
      // -1 and 0 both mean no limit.
      topK: topK === undefined ? undefined : Math.max(0, topK),
    },
    stopTexts: typeof stop === "string" ? [stop] : stop,
    seed: asked.seed,
    isStreamed: asked.stream === true,
  };
}

function formatOf(asked: ChatRequest["response_format"]): ResponseFormat | undefined {
  if (asked === undefined || asked.type === "text") return undefined;
  if (asked.type === "json_object") return { schema: undefined, description: "" };
  const { schema, description } = asked.json_schema;
  if (schema === undefined) return { schema, description: description ?? "" };
  return schemaFormat(schema, description, "response_format.json_schema.schema");
}

function messageOf(message: ChatRequest["messages"][number], index: number): ChatMessage {
  switch (message.role) {
    case "tool": {
      const { content: text, tool_call_id, name } = message;
      return { role: "tool", content: text, tool_call_id, ...(name !== undefined && { name }) };
    }
    case "assistant": {
      const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: json } }, at) => {
        const param = `messages.${index}.tool_calls.${at}.function.arguments`;
        return { id, type: "function" as const, function: { name, arguments: argumentsOfJson(json, param) } };
      });
      return { role: "assistant", content: message.content, ...(calls.length > 0 && { tool_calls: calls }) };
    }
    default:
      // `developer` is the newer name of the system role, which templates do not know.
      return { role: message.role === "developer" ? "system" : message.role, content: message.content };
  }
}

function toolOf({
  function: { name, description = "", parameters },
}: NonNullable<ChatRequest["tools"]>[number]): ChatTool {
  return {
    type: "function",
    function: { name, description, parameters: parameters ?? { type: "object", properties: {} } },
  };
}

function writerOf(asked: ChatRequest, { id, created }: ReplyHead): ReplyWriter {
  const head = { id: `chatcmpl-${id}`, created, model: asked.model };
  const wantsUsage = asked.stream_options?.include_usage === true;
  const chunk = (choices: readonly object[], extra: object = {}): ServerSentEvent => ({
    data: JSON.stringify({
      object: "chat.completion.chunk",
      ...head,
      choices,
      // Every chunk but the last has a null here.
      ...(wantsUsage && { usage: null }),
      ...extra,
    }),
  });
  const numAnswers = asked.n ?? 1;
  /** Answers that have ended. */
  const ended: SessionReply[] = [];
  return {
    whole: (...replies) => ({
      object: "chat.completion",
      ...head,
      choices: replies.map((reply, index) => ({
        index,
        message: {
          role: "assistant",
          content: reply.text === "" && reply.calls.length > 0 ? null : reply.text,
          refusal: null,
          ...(reply.calls.length > 0 && { tool_calls: reply.calls.map(callBody) }),
        },
        logprobs: null,
        finish_reason: finishOf(reply),
        ...demandsBody(reply),
        ...tokensOf(asked, reply),
      })),
      ...(asked.return_token_ids === true && { prompt_token_ids: replies[0].tokens.promptIds }),
      usage: usageBody(usageOf(replies)),
    }),
    events(event: ReplyEvent, index = 0): readonly ServerSentEvent[] {
      const piece = (delta: object, finish: string | null = null, extra: object = {}) =>
        chunk([{ index, delta, logprobs: null, finish_reason: finish, ...extra }]);
      switch (event.kind) {
        case "begin":
          return [piece({ role: "assistant", content: "" })];
        case "text":
          return [piece({ content: event.text })];
        case "call_begin": {
          const { index: at, id: callId, name } = event;
          const call = { index: at, id: callId, type: "function", function: { name, arguments: "" } };
          return [piece({ tool_calls: [call] })];
        }
        case "call_arguments":
          return [piece({ tool_calls: [{ index: event.index, function: { arguments: event.json } }] })];
        case "call_end":
          return [];
        case "end": {
          const { reply } = event;
          ended.push(reply);
          const last = piece({}, finishOf(reply), { ...demandsBody(reply), ...tokensOf(asked, reply) });
          if (ended.length < numAnswers) return [last];
          const usage = { usage: usageBody(usageOf(ended)) };
          return [last, ...(wantsUsage ? [chunk([], usage)] : []), { data: "[DONE]" }];
        }
      }
    },
    failure: (failure) => [{ data: JSON.stringify(openaiFailureBody(failure)) }, { data: "[DONE]" }],
  };
}

/** The input is counted once, and the output of all answers. */
function usageOf(replies: readonly SessionReply[]): ReplyUsage {
  const usages = replies.map(({ usage }) => usage);
  return {
    inputTokens: usages[0]?.inputTokens ?? 0,
    cachedTokens: usages[0]?.cachedTokens ?? 0,
    outputTokens: usages.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
  };
}

function callBody({ id, name, argumentsJson }: ReplyCall) {
  return { id, type: "function", function: { name, arguments: argumentsJson } };
}

function tokensOf({ return_token_ids: wanted }: ChatRequest, { tokens }: SessionReply): object {
  return wanted === true ? { token_ids: tokens.tokenIds } : {};
}

function finishOf({ finish }: SessionReply): string {
  // This API has no value of its own for a stop text.
  return finish === ReplyFinish.stopText ? "stop" : finish;
}

function usageBody({ inputTokens, cachedTokens, outputTokens }: ReplyUsage) {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}
