/**
 * A model behind an OpenAI-compatible API that takes the policy's place, for evaluations.
 *
 * P1: the API returns text and no tokens. The text is tokenized so that the conversation can go on, without logprobs and
 *     versions, so reinforcement learning refuses it. Tool calls arrive as data and are written in the format of the run's
 *     own model, because agents read calls from text.
 * P2: errors that may pass (no connection, 408, 409, 425, 429, 5xx) are tried again with growing pauses; after the last try
 *     the attempt has failed for a reason outside the agent. A refusal fails at once.
 */

import { AnswerTooLongError, deadline, RetryableError, readText, retry, type Semaphore } from "@hone/core";
import { FinishReason } from "@hone/rl";
import { traceHeaders } from "@hone/telemetry";
import type { ChatRenderer } from "@hone/tokenizer";
import { PolicyRefusedError } from "../errors.ts";
import {
  type EndpointAnswer,
  type EndpointCall,
  toEndpointMessages,
  writeAnswer,
} from "./endpoint-messages.ts";
import type { GenerateCall, Policy, PolicyGeneration } from "./policy.ts";

export interface EndpointOptions {
  /** URL up to and including `/v1`. */
  readonly baseUrl: string;
  readonly model: string;
  /** Sent as bearer token; undefined = no token is sent. */
  readonly key: string | undefined;
  /** The renderer of the conversation's record. */
  readonly renderer: ChatRenderer;
  /** Limits the number of requests in flight; shared by all callers of this endpoint. */
  readonly slots: Semaphore;
  /** First pause before another try; it doubles each time. @default 500 */
  readonly minDelayMs?: number;
}

const MAX_TRIES = 8;
/** An answer of a hundred thousand tokens is smaller than one megabyte. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const DEFAULT_MIN_DELAY_MS = 500;
const MAX_DELAY_MS = 20_000;
const PASSING_STATUS: ReadonlySet<number> = new Set([408, 409, 425, 429]);
const SHOWN_CHARACTERS = 300;
/** Seeds of the API are signed and have 32 bits or more. */
const SEED_RANGE = 2 ** 31;

/** The endpoint cannot be reached or is busy. */
export class EndpointUnavailableError extends RetryableError {
  constructor(url: string, reason: string, options?: ErrorOptions) {
    super("ENDPOINT_UNAVAILABLE", `Cannot get an answer from ${url}: ${reason}`, options);
  }
}

export class EndpointPolicy implements Policy {
  readonly #options: EndpointOptions;
  readonly #url: string;

  constructor(options: EndpointOptions) {
    this.#options = options;
    this.#url = `${options.baseUrl.replace(/\/+$/, "")}/chat/completions`;
  }

  async generate(call: GenerateCall): Promise<PolicyGeneration> {
    const { slots, minDelayMs = DEFAULT_MIN_DELAY_MS } = this.#options;
    const body = this.#bodyOf(call);
    return retry(
      async () => {
        await slots.acquire(call.signal);
        const startedAt = performance.now();
        try {
          const answer = await deadline(
            `the answer of ${this.#url}`,
            call.deadlineMs,
            (signal) => this.#ask(body, traceHeaders(call.trace), signal),
            { signal: call.signal },
          );
          return this.#generationOf(answer, call, performance.now() - startedAt);
        } finally {
          slots.release();
        }
      },
      {
        signal: call.signal,
        maxAttempts: MAX_TRIES,
        minDelayMs,
        maxDelayMs: MAX_DELAY_MS,
        isRetryable: (error) => error instanceof EndpointUnavailableError,
      },
    ); // P2
  }

  #bodyOf({ messages, sampling, seed, tools = [] }: GenerateCall): unknown {
    if (messages === undefined) {
      throw new PolicyRefusedError(`${this.#url} takes messages, but the call has only tokens`);
    }
    const { temperature, topP, topK, maxNewTokens } = sampling;
    return {
      model: this.#options.model,
      messages: toEndpointMessages(messages, tools),
      ...(tools.length > 0 ? { tools } : {}),
      temperature,
      top_p: topP,
      ...(topK > 0 ? { top_k: topK } : {}),
      max_tokens: maxNewTokens,
      seed: seed % SEED_RANGE,
    };
  }

  async #ask(body: unknown, traced: Readonly<Record<string, string>>, signal: AbortSignal): Promise<unknown> {
    const { key } = this.#options;
    let response: Response;
    let text: string;
    try {
      response = await fetch(this.#url, {
        method: "POST",
        headers: {
          ...traced,
          "content-type": "application/json",
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        },
        body: JSON.stringify(body),
        // The key is bound to this host (see BoundKeys).
        redirect: "manual",
        signal,
      });
      text = await readText(response, MAX_ANSWER_BYTES);
    } catch (cause) {
      signal.throwIfAborted();
      if (cause instanceof AnswerTooLongError) {
        throw new PolicyRefusedError(`${this.#url}: more than ${MAX_ANSWER_BYTES} bytes for one answer`);
      }
      throw new EndpointUnavailableError(this.#url, "no connection", { cause });
    }
    if (!response.ok) {
      const reason = `status ${response.status}: ${text.slice(0, SHOWN_CHARACTERS)}`;
      const mayPass = PASSING_STATUS.has(response.status) || response.status >= 500;
      throw mayPass
        ? new EndpointUnavailableError(this.#url, reason)
        : new PolicyRefusedError(`${this.#url}: ${reason}`);
    }
    try {
      return JSON.parse(text);
    } catch (cause) {
      const reason = `the answer is not JSON: ${text.slice(0, SHOWN_CHARACTERS)}`;
      throw new EndpointUnavailableError(this.#url, reason, { cause });
    }
  }

  /** P1 */
  #generationOf(
    answer: unknown,
    { messages = [], tools = [] }: GenerateCall,
    generationMs: number,
  ): PolicyGeneration {
    const { renderer } = this.#options;
    const { tokenizer } = renderer;
    const read = this.#answerOf(answer);
    const { isCutOff } = read;
    const ids = tokenizer.encode(writeAnswer(read, messages, tools, renderer));
    const stopTokenId = tokenizer.eosTokenId;
    // An empty answer still consists of its stop token.
    const isStopped = stopTokenId !== undefined && (!isCutOff || ids.length === 0);
    return {
      tokenIds: isStopped ? [...ids, stopTokenId] : ids,
      logprobs: [],
      versions: [],
      finishReason: isStopped ? FinishReason.stop : FinishReason.length,
      cachedTokens: 0,
      generationMs,
      replica: this.#options.model,
    };
  }

  #answerOf(answer: unknown): EndpointAnswer {
    const { choices } = recordOf(answer);
    const choice = recordOf(Array.isArray(choices) ? choices[0] : undefined);
    const { content, tool_calls: calls } = recordOf(choice.message);
    const isCutOff = choice.finish_reason === "length";
    const found = (Array.isArray(calls) ? calls : []).map((call): EndpointCall => {
      const { name, arguments: args } = recordOf(recordOf(call).function);
      return {
        name: String(name),
        argumentsText: typeof args === "string" ? args : JSON.stringify(args ?? {}),
      };
    });
    // A model that only thought or called tools, or was cut off while doing so, has no text.
    if (content === null || content === undefined || content === "") {
      if (content === undefined && found.length === 0) throw this.#noText(answer);
      return { content: "", calls: found, isCutOff };
    }
    if (typeof content === "string") return { content, calls: found, isCutOff };
    throw this.#noText(answer);
  }

  #noText(answer: unknown): EndpointUnavailableError {
    const shown = JSON.stringify(answer).slice(0, SHOWN_CHARACTERS);
    return new EndpointUnavailableError(this.#url, `an answer without text: ${shown}`);
  }
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
