/**
 * Parameters of completions.
 *
 * Those that this engine cannot follow are refused unless their value changes nothing; those that the API does not
 * know are left alone, as other servers' clients send their own.
 */

import { z } from "zod";
import { MAX_TOP_LOGPROBS } from "../domain/inference-engine.ts";

/** As with the API's own service; a stop text that is longer than a line is none. */
export const MAX_STOP_TEXTS = 4;
export const MAX_STOP_CHARACTERS = 256;
/** More than any model has ends. */
export const MAX_STOP_TOKENS = 128;
/** As with the API's own service. */
export const MAX_CHOICES = 128;

/** A parameter that the engine has no use for: only the values that change nothing are taken. */
function neutral(values: readonly unknown[], because: string) {
  const taken = new Set(values.map((value) => JSON.stringify(value)));
  return z
    .unknown()
    .refine((value) => value === null || taken.has(JSON.stringify(value)), because)
    .optional();
}

/** Absent and null mean the same in this API. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform((value) => value ?? undefined);
}

const NO_TOOLS = "only an empty list: tools are not offered to the model here";

/** What both kinds of completions take. Parameters that this API does not know are left alone. */
export const samplingShape = {
  model: z.string().min(1).max(512),
  n: optional(z.number().int().min(1).max(MAX_CHOICES)),
  temperature: optional(z.number().min(0).max(2)),
  top_p: optional(z.number().gt(0).max(1)),
  /** Of vLLM and others; -1 and 0 mean all. */
  top_k: optional(z.number().int().min(-1).max(1_000_000)),
  max_tokens: optional(z.number().int().min(1).max(Number.MAX_SAFE_INTEGER)),
  seed: optional(z.number().refine(Number.isSafeInteger, "a safe integer")),
  stop: optional(
    z.union([
      z.string().min(1).max(MAX_STOP_CHARACTERS),
      z.array(z.string().min(1).max(MAX_STOP_CHARACTERS)).max(MAX_STOP_TEXTS),
    ]),
  ),
  /** Of vLLM, as the next one: ids that end the answer, beside the model's own, which can be left out. */
  stop_token_ids: optional(
    z
      .array(
        z
          .number()
          .int()
          .min(0)
          .max(2 ** 31 - 1),
      )
      .max(MAX_STOP_TOKENS),
  ),
  ignore_eos: optional(z.boolean()),
  stream: optional(z.boolean()),
  stream_options: optional(z.object({ include_usage: optional(z.boolean()) })),
  frequency_penalty: optional(z.number().min(-2).max(2)),
  presence_penalty: optional(z.number().min(-2).max(2)),
  /** Of vLLM and others, as the next one. */
  repetition_penalty: optional(z.number().gt(0).max(100)),
  min_p: optional(z.number().min(0).max(1)),
  logit_bias: neutral([{}], "only an empty object: logits are taken as they are"),
};

/** How many of the most likely tokens are told beside each sampled one. */
export const topLogprobs = z.number().int().min(0).max(MAX_TOP_LOGPROBS);

/** What chat completions have beside it, taken where it changes nothing. */
export const unusedChatShape = {
  tools: neutral([[]], NO_TOOLS),
  functions: neutral([[]], NO_TOOLS),
  tool_choice: neutral(["none", "auto"], "only none or auto, as no tools are offered"),
  response_format: neutral([{ type: "text" }], "only text: answers are not held to a schema"),
  modalities: neutral([["text"]], "only text"),
};

/** The same for completions of a text. */
export const unusedTextShape = {
  best_of: neutral([1], "only 1: every choice is told"),
  echo: neutral([false], "only false: prompts are not repeated"),
  suffix: neutral([""], "only empty: text is continued, not inserted"),
};
