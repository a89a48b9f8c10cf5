/**
 * The parameters of completions.
 *
 * Parameters of the API that this engine does not support are refused unless their value has no effect. Parameters that the API
 * does not know are ignored, as clients of other servers send them.
 */

import { numberIn } from "@hone/rl";
import { z } from "zod";
import { mapShapingBySnakeName } from "../domain/engine-parameters.ts";
import { MAX_TOP_LOGPROBS } from "../domain/inference-engine.ts";

/** The limit of OpenAI's own service. */
export const MAX_STOP_TEXTS = 4;
/** Longer than a line, and so than any sensible stop text. */
export const MAX_STOP_CHARACTERS = 256;
/** More stop tokens than any model has. */
export const MAX_STOP_TOKENS = 128;
/** The limit of OpenAI's own service. */
export const MAX_CHOICES = 128;

/** A parameter that the engine does not support; only the values without an effect are allowed. */
function neutral(values: readonly unknown[], because: string) {
  const taken = new Set(values.map((value) => JSON.stringify(value)));
  return z
    .unknown()
    .refine((value) => value === null || taken.has(JSON.stringify(value)), because)
    .optional();
}

/** A parameter that may be absent or null, which mean the same in this API. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform((value) => value ?? undefined);
}

const NO_TOOLS = "only an empty list: tools are not offered to the model here";

/** The parameters of both kinds of completions. */
export const samplingShape = {
  model: z.string().min(1).max(512),
  n: optional(z.number().int().min(1).max(MAX_CHOICES)),
  ...mapShapingBySnakeName(({ range, inRequests = range }) => optional(numberIn(inRequests))),
  max_tokens: optional(z.number().int().min(1).max(Number.MAX_SAFE_INTEGER)),
  seed: optional(z.number().refine(Number.isSafeInteger, "a safe integer")),
  stop: optional(
    z.union([
      z.string().min(1).max(MAX_STOP_CHARACTERS),
      z.array(z.string().min(1).max(MAX_STOP_CHARACTERS)).max(MAX_STOP_TEXTS),
    ]),
  ),
  /** A parameter of vLLM: ids that end the answer, in addition to the model's own. With vLLM's ignore_eos the model's own do not. */
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
  logit_bias: neutral([{}], "only an empty object: logits are taken as they are"),
};

/** How many of the most likely tokens are returned with each sampled one. */
export const topLogprobs = z.number().int().min(0).max(MAX_TOP_LOGPROBS);

/** Further parameters of chat completions, of which only values without an effect are allowed. */
export const unusedChatShape = {
  tools: neutral([[]], NO_TOOLS),
  functions: neutral([[]], NO_TOOLS),
  tool_choice: neutral(["none", "auto"], "only none or auto, as no tools are offered"),
  response_format: neutral([{ type: "text" }], "only text: answers are not held to a schema"),
  modalities: neutral([["text"]], "only text"),
};

/** The same for text completions. */
export const unusedTextShape = {
  best_of: neutral([1], "only 1: every choice is returned"),
  echo: neutral([false], "only false: prompts are not repeated"),
  suffix: neutral([""], "only empty: text is continued, not inserted"),
};
