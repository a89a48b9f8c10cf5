/** The parameters and the answers of POST /v1/completions. */

import { parseBody } from "@hone/service-kit";
import { z } from "zod";
import type { TextToken } from "../domain/serving/choice-text.ts";
import type { Choice } from "../domain/serving/complete.ts";
import {
  type AnswerChunks,
  type AnswerHead,
  type CompletionApi,
  usageOf,
  wantsUsage,
} from "./completion-api.ts";
import { planCompletion } from "./completion-plan.ts";
import { optional, samplingShape, topLogprobs, unusedTextShape } from "./parameters.ts";

/** The default of OpenAI's own service. */
const DEFAULT_NEW_TOKENS = 16;

const tokenIds = z
  .array(
    z
      .number()
      .int()
      .min(0)
      .max(2 ** 31 - 1),
  )
  .min(1);

const requestSchema = z.object({
  ...samplingShape,
  ...unusedTextShape,
  /** One prompt, as text or as token ids; alone or in a list. */
  prompt: z
    .union(
      [z.string(), tokenIds, z.tuple([z.string()]), z.tuple([tokenIds])],
      "one prompt: a text, or token ids",
    )
    .transform((prompt): string | readonly number[] => {
      if (typeof prompt === "string") return prompt;
      const [first] = prompt;
      return typeof first === "string" || Array.isArray(first) ? first : (prompt as number[]);
    }),
  logprobs: optional(topLogprobs),
  /** A parameter of vLLM: whether the tokenizer adds its special tokens to a text, such as the one at its beginning. */
  add_special_tokens: optional(z.boolean()),
});
type TextRequest = z.output<typeof requestSchema>;

export const TEXT_COMPLETIONS: CompletionApi<TextRequest> = {
  prefix: "cmpl",
  parse: (body) => parseBody(requestSchema, body),
  plan(request, model) {
    const { prompt, max_tokens: value, logprobs = 0, add_special_tokens: isWrapped = true } = request;
    const { tokenizer } = model.language;
    const encode = (text: string) => (isWrapped ? tokenizer.encodeText(text) : tokenizer.encode(text));
    return planCompletion(model, request, {
      topLogprobs: logprobs,
      promptIds: typeof prompt === "string" ? encode(prompt) : prompt,
      param: "prompt",
      maxNewTokens: value === undefined ? undefined : { param: "max_tokens", value },
      defaultNewTokens: DEFAULT_NEW_TOKENS,
    });
  },
  whole: (request, head, promptTokens, choices) => ({
    object: "text_completion",
    ...head,
    choices: choices.map(({ text, tokens, finishReason }, index) => ({
      index,
      text,
      logprobs: logprobsOf(request, tokens),
      finish_reason: finishReason,
    })),
    usage: usageOf(promptTokens, choices),
  }),
  chunks: chunksOf,
};

function chunksOf(request: TextRequest, head: AnswerHead): AnswerChunks {
  const chunk = (choices: readonly object[], usage: object | null = null) => ({
    object: "text_completion",
    ...head,
    choices,
    ...(wantsUsage(request) ? { usage } : {}),
  });
  return {
    begin: () => undefined,
    delta: (index, { text, tokens }) =>
      chunk([{ index, text, logprobs: logprobsOf(request, tokens), finish_reason: null }]),
    end: (index, { finishReason }) =>
      chunk([{ index, text: "", logprobs: null, finish_reason: finishReason }]),
    usage: (promptTokens, choices: readonly Choice[]) => chunk([], usageOf(promptTokens, choices)),
  };
}

function logprobsOf({ logprobs }: TextRequest, tokens: readonly TextToken[]) {
  if (logprobs === undefined) return null;
  return {
    tokens: tokens.map(({ text }) => text),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    // The sampled token is included, as in the API.
    top_logprobs:
      logprobs === 0
        ? null
        : tokens.map((token) =>
            Object.fromEntries([...token.top, token].map(({ text, logprob }) => [text, logprob])),
          ),
    text_offset: tokens.map(({ offset }) => offset),
  };
}
