/** The command line's client of a gateway's API (docs/serving.md). */

import { AnswerTooLongError, readText } from "@hone/core";
import { UsageError } from "../errors.ts";

/** A gateway's API. */
export interface GatewayAddress {
  /** An address that ends with /v1. */
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
}

export interface ChatTurn {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

export interface AnswerOptions {
  readonly maxTokens: number | undefined;
  readonly temperature: number | undefined;
  readonly signal: AbortSignal;
}

export type ModelState =
  | { readonly kind: "loaded" }
  | { readonly kind: "loading"; readonly message: string }
  | { readonly kind: "unknown"; readonly message: string };

/** Longest wait for the answer to a question about models. */
const ANSWER_TIMEOUT_MS = 10_000;
/** Largest answer that is read at once, and largest event of a stream. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/** @returns the names of the models that are loaded. */
export async function listModels(gateway: GatewayAddress): Promise<string[]> {
  const response = await ask(gateway, "/models", { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
  await check(response);
  const { data } = (await jsonOf(response)) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

/** @throws {UsageError} when the model cannot be loaded. */
export async function modelState(gateway: GatewayAddress, model: string): Promise<ModelState> {
  const response = await ask(gateway, `/models/${encodeURIComponent(model)}`, {
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  });
  if (response.ok) {
    await response.body?.cancel();
    return { kind: "loaded" };
  }
  const { message, code } = await failureOf(response);
  if (code === "model_loading") return { kind: "loading", message };
  if (code === "model_not_found") return { kind: "unknown", message };
  throw new UsageError(message);
}

/** Yields the text of an answer in pieces, as it is generated. */
export async function* streamAnswer(
  gateway: GatewayAddress,
  model: string,
  messages: readonly ChatTurn[],
  { maxTokens, temperature, signal }: AnswerOptions,
): AsyncGenerator<string> {
  const response = await ask(gateway, "/chat/completions", {
    method: "POST",
    signal,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, messages, temperature, max_completion_tokens: maxTokens, stream: true }),
  });
  await check(response);
  for await (const data of eventsOf(response)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data) as {
      error?: { message: string };
      choices?: { delta: { content?: string } }[];
    };
    if (chunk.error !== undefined) throw new UsageError(chunk.error.message);
    const text = chunk.choices?.[0]?.delta.content ?? "";
    if (text !== "") yield text;
  }
}

function ask({ baseUrl, apiKey }: GatewayAddress, path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  if (apiKey !== undefined) headers.set("authorization", `Bearer ${apiKey}`);
  return fetch(`${baseUrl}${path}`, { ...init, headers });
}

async function check(response: Response): Promise<void> {
  if (!response.ok) throw new UsageError((await failureOf(response)).message);
}

async function failureOf(response: Response): Promise<{ message: string; code: string | null }> {
  const { error } = (await jsonOf(response)) as { error: { message: string; code: string | null } };
  return error;
}

async function jsonOf(response: Response): Promise<unknown> {
  return JSON.parse(await readText(response, MAX_ANSWER_BYTES));
}

/** Yields the data of server-sent events. */
async function* eventsOf(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes as Uint8Array, { stream: true });
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    if (text.length > MAX_ANSWER_BYTES) throw new AnswerTooLongError(MAX_ANSWER_BYTES);
    for (const event of events) if (event.startsWith("data: ")) yield event.slice("data: ".length);
  }
}
