/** Asks a model one question over an OpenAI-compatible API, and computes what the answer cost. */

import { RemoteUnavailableError } from "@hone/core";
import { z } from "zod";
import type { ConfigOf, JudgeParts } from "./judge-parts.ts";
import { remoteCall } from "./remote-call.ts";

type ChatConfig = Pick<
  ConfigOf<"llm">,
  | "baseUrl"
  | "model"
  | "temperature"
  | "maxTokens"
  | "price"
  | "deadlineMs"
  | "maxAttempts"
  | "concurrency"
  | "keyVariable"
>;

export interface ChatMessage {
  readonly role: "system" | "user";
  readonly content: string;
}

/** The value that was read from an answer, and the cost of the answer. */
export interface ChatAnswer<Value> {
  readonly value: Value;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** In the currency of the prices. */
  readonly cost: number;
}

/** @param read reads a value from the answer's text; where it returns undefined, the model is asked again. */
export type ChatCall = <Value>(
  messages: readonly ChatMessage[],
  read: (content: string) => Value | undefined,
  signal: AbortSignal,
) => Promise<ChatAnswer<Value>>;

const TOKENS_PER_PRICE = 1_000_000;
const SHOWN_CHARACTERS = 200;

const completionSchema = z.looseObject({
  choices: z.array(z.looseObject({ message: z.looseObject({ content: z.string().nullish() }) })).min(1),
  usage: z
    .looseObject({ prompt_tokens: z.number().default(0), completion_tokens: z.number().default(0) })
    .nullish(),
});

/** @param expected a description of how an answer must end, for errors, such as `"Score: N"`. */
export function chatCall(config: ChatConfig, expected: string, parts: JudgeParts): ChatCall {
  const { baseUrl, model, temperature, maxTokens, price } = config;
  const ask = remoteCall(`${baseUrl.replace(/\/+$/, "")}/chat/completions`, config, parts);
  return (messages, read, signal) =>
    ask(
      { model, temperature, max_tokens: maxTokens, messages },
      (answer) => {
        const { choices = [], usage } = completionSchema.safeParse(answer).data ?? {};
        const content = choices[0]?.message.content ?? "";
        const value = read(content);
        if (value === undefined) {
          throw new RemoteUnavailableError(
            `the model's answer must end with ${expected}, but it ends with ${JSON.stringify(content.slice(-SHOWN_CHARACTERS))}`,
          );
        }
        const inputTokens = usage?.prompt_tokens ?? 0;
        const outputTokens = usage?.completion_tokens ?? 0;
        const cost = (inputTokens * price.input + outputTokens * price.output) / TOKENS_PER_PRICE;
        return { value, inputTokens, outputTokens, cost };
      },
      signal,
    );
}

/** Joins the parts of a question, each between tags with its name. */
export function taggedParts(parts: readonly (readonly [tag: string, text: string])[]): string {
  return parts.map(([tag, text]) => `<${tag}>\n${text}\n</${tag.split(" ", 1)[0]}>`).join("\n\n");
}
