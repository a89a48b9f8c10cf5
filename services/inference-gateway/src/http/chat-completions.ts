/** The parameters and the answers of POST /v1/chat/completions. */

import { ApiRequestError, parseBody } from "@hone/service-kit";
import type { ChatMessage } from "@hone/tokenizer";
import { z } from "zod";
import type { SpelledToken, TextDelta, TextToken } from "../domain/serving/choice-text.ts";
import type { Choice } from "../domain/serving/complete.ts";
import {
  type AnswerChunks,
  type AnswerHead,
  type CompletionApi,
  usageOf,
  wantsUsage,
} from "./completion-api.ts";
import { planCompletion } from "./completion-plan.ts";
import { optional, samplingShape, topLogprobs, unusedChatShape } from "./parameters.ts";

/** More messages than any conversation has; the template takes time for each. */
const MAX_MESSAGES = 10_000;
/** The character that a decoder puts in place of bytes that are not a whole character. */
const REPLACEMENT = "\uFFFD";

const textPart = z.object({
  type: z.literal("text", "only text: this engine reads no other content"),
  text: z.string(),
});
const content = z.union([
  z.string(),
  z.array(textPart).transform((parts) => parts.map(({ text }) => text).join("")),
]);

const message = z.discriminatedUnion("role", [
  z.object({ role: z.literal(["system", "user", "tool"]), content }),
  z.object({ role: z.literal("developer"), content }),
  z.object({
    role: z.literal("assistant"),
    content: content.nullish().transform((value) => value ?? ""),
    tool_calls: z.array(z.unknown()).max(0, "only an empty list: tools are not offered here").nullish(),
  }),
]);

const requestSchema = z.object({
  ...samplingShape,
  ...unusedChatShape,
  messages: z.array(message).min(1).max(MAX_MESSAGES),
  max_completion_tokens: samplingShape.max_tokens,
  logprobs: optional(z.boolean()),
  top_logprobs: optional(topLogprobs),
});
type ChatRequest = z.output<typeof requestSchema>;

export const CHAT_COMPLETIONS: CompletionApi<ChatRequest> = {
  prefix: "chatcmpl",
  parse: (body) => parseBody(requestSchema, body),
  plan(request, model) {
    const { renderer } = model.language;
    if (renderer === undefined) {
      throw new ApiRequestError(
        `The model ${model.id} has no chat template, so the request must go to /v1/completions`,
        { param: "model" },
      );
    }
    const newest = request.max_completion_tokens;
    const [param, value] =
      newest === undefined
        ? (["max_tokens", request.max_tokens] as const)
        : (["max_completion_tokens", newest] as const);
    const { logprobs, top_logprobs: top = 0 } = request;
    if (top > 0 && logprobs !== true) {
      throw new ApiRequestError(
        `top_logprobs is ${top}, so logprobs must be true; it is ${logprobs ?? "absent"}`,
        { param: "top_logprobs" },
      );
    }
    return planCompletion(model, request, {
      topLogprobs: top,
      promptIds: renderer.render(messagesOf(request)).tokenIds,
      param: "messages",
      maxNewTokens: value === undefined ? undefined : { param, value },
      defaultNewTokens: undefined,
    });
  },
  whole: (request, head, promptTokens, choices) => ({
    object: "chat.completion",
    ...head,
    choices: choices.map(({ text, tokens, finishReason }, index) => ({
      index,
      message: { role: "assistant", content: text, refusal: null },
      logprobs: logprobsOf(request, tokens),
      finish_reason: finishReason,
    })),
    usage: usageOf(promptTokens, choices),
  }),
  chunks: chunksOf,
};

function messagesOf({ messages }: ChatRequest): ChatMessage[] {
  return messages.map(({ role, content: text }) => ({
    // `developer` is the newer name of the role `system`; templates do not know it.
    role: role === "developer" ? "system" : role,
    content: text,
  }));
}

function chunksOf(request: ChatRequest, head: AnswerHead): AnswerChunks {
  const chunk = (choices: readonly object[], usage: object | null = null) => ({
    object: "chat.completion.chunk",
    ...head,
    choices,
    // Only the last chunk has the usage; the others have null.
    ...(wantsUsage(request) ? { usage } : {}),
  });
  const piece = (
    index: number,
    delta: object,
    tokens?: TextDelta["tokens"],
    finish: string | null = null,
  ) => ({
    index,
    delta,
    logprobs: tokens === undefined ? null : logprobsOf(request, tokens),
    finish_reason: finish,
  });
  return {
    begin: (index) => chunk([piece(index, { role: "assistant", content: "" })]),
    delta: (index, { text, tokens }) => chunk([piece(index, { content: text }, tokens)]),
    end: (index, { finishReason }) => chunk([piece(index, {}, undefined, finishReason)]),
    usage: (promptTokens, choices: readonly Choice[]) => chunk([], usageOf(promptTokens, choices)),
  };
}

function logprobsOf({ logprobs }: ChatRequest, tokens: readonly TextToken[]) {
  if (logprobs !== true) return null;
  const entryOf = ({ text, logprob }: SpelledToken) => ({
    token: text,
    logprob,
    bytes: text.includes(REPLACEMENT) ? null : [...Buffer.from(text)],
  });
  const entries = tokens.map((token) => ({ ...entryOf(token), top_logprobs: token.top.map(entryOf) }));
  return { content: entries, refusal: null };
}
