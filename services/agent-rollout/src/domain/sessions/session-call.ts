/**
 * An agent's call of the model through its session, and the answer to it, independent of any API. Every wire format
 * (`http/dialects/`) is read into a {@link SessionRequest} and written from {@link ReplyEvent}s or a {@link SessionReply}.
 */

import type { ChatMessage, ChatTool } from "@hone/tokenizer";
import type { ResponseFormat } from "./response-format.ts";

/** More calls than agents make in parallel, and few enough that one rollout cannot fill an engine. */
export const MAX_CALLS_AT_ONCE = 64;

/** One call of the model. */
export interface SessionRequest {
  /** The model's name in the call: a role of the run, or any name if the run has no roles. */
  readonly model: string;
  /**
   * At least one message, in the form that chat templates read: content is text (parts joined, absent = ""); the arguments of
   * an answer's calls are objects; a tool's result is a message of its own, with the id of its call. A developer's message
   * becomes a system message.
   */
  readonly messages: readonly ChatMessage[];
  /** Empty = the model is shown none. */
  readonly tools: readonly ChatTool[];
  /**
   * `none` hides the tools. A demand for a call, of any tool or of one by its name, is told to the model in words, as sampling
   * is never constrained; then there is such a tool.
   */
  readonly toolChoice: "auto" | "none" | "required" | { readonly name: string };
  /** The format that the answer shall have, which is told to the model in words; undefined = text. */
  readonly responseFormat: ResponseFormat | undefined;
  /** How many answers are sampled, 1 to {@link MAX_CALLS_AT_ONCE}; each is a turn of its own. */
  readonly numAnswers: number;
  /** Most tokens of the answer, at least 1; the run's own limit applies too. Undefined = only the run's limit. */
  readonly maxNewTokens: number | undefined;
  /** Sampling parameters in the call. The run's own are used instead, and calls that differ from them are counted. */
  readonly sampling: {
    readonly temperature?: number | undefined;
    readonly topP?: number | undefined;
    readonly topK?: number | undefined;
  };
  /** Texts that end the answer; none of them is empty. The agent gets the answer up to the text, without it. */
  readonly stopTexts: readonly string[];
  /** A safe integer. Within one session, the same call with the same seed gets the same answers. */
  readonly seed: number | undefined;
  readonly isStreamed: boolean;
}

/** Why an answer ended. */
export const ReplyFinish = {
  /** The model ended it. */
  stop: "stop",
  /** One of the stop texts occurred in it. */
  stopText: "stop_text",
  /** It calls tools. */
  toolCalls: "tool_calls",
  /** The most tokens allowed were sampled. */
  length: "length",
} as const;
export type ReplyFinish = (typeof ReplyFinish)[keyof typeof ReplyFinish];

export interface ReplyUsage {
  readonly inputTokens: number;
  /** Input tokens whose keys and values were in the cache. */
  readonly cachedTokens: number;
  /** All sampled tokens, including the stop token. */
  readonly outputTokens: number;
}

/** A call of a tool. */
export interface ReplyCall {
  /** `c` and eight letters or digits, unique within the session; in formats with ids, the one that the model wrote. */
  readonly id: string;
  readonly name: string;
  /** The JSON text of an object. */
  readonly argumentsJson: string;
}

/** Whether an answer meets a demand of its call. */
export interface ReplyCheck {
  readonly demand: "response_format" | "tool_choice";
  /** Why it does not; undefined = it does. */
  readonly problem: string | undefined;
}

/** A whole answer. */
export interface SessionReply {
  /** The text without the calls; may be empty. */
  readonly text: string;
  readonly calls: readonly ReplyCall[];
  readonly finish: ReplyFinish;
  /** The stop text that ended it; undefined if none did. */
  readonly stopText: string | undefined;
  /** One for each demand; empty = the call demanded nothing. */
  readonly checks: readonly ReplyCheck[];
  readonly usage: ReplyUsage;
  /** The tokens of this call, for clients that ask for token ids. */
  readonly tokens: ReplyTokens;
}

export interface ReplyTokens {
  /** The whole context. */
  readonly promptIds: readonly number[];
  /** [N] the sampled tokens, including the stop token. */
  readonly tokenIds: readonly number[];
  /** [N]; empty if an external model gave none. */
  readonly logprobs: readonly number[];
}

/**
 * A streamed answer, in this order: `begin`, any number of `text`, then for each call `call_begin`, one or more
 * `call_arguments` and `call_end`, then `end`. Joined, the texts are the reply's text, and the arguments are the call's.
 * A failure after `begin` ends the stream without `end`; see `ReplyWriter.failure`.
 */
export type ReplyEvent =
  | { readonly kind: "begin"; readonly inputTokens: number }
  /** Never empty. */
  | { readonly kind: "text"; readonly text: string }
  /** `index` counts the calls from 0. */
  | { readonly kind: "call_begin"; readonly index: number; readonly id: string; readonly name: string }
  /** A piece of the arguments' JSON text. */
  | { readonly kind: "call_arguments"; readonly index: number; readonly json: string }
  | { readonly kind: "call_end"; readonly index: number }
  /** The whole answer, with the reason why it ended. */
  | { readonly kind: "end"; readonly reply: SessionReply };

/** The failure of a call. The status says of which kind it is. */
export interface SessionFailure {
  /**
   * 400 wrong request, 401 no or a wrong credential, 403 not allowed, 404 no such session, route or model, 409 contradicts what is known, 413 too large,
   * 429 too many calls at once, 500 failure of this service, 503 may work later, 504 out of time.
   */
  readonly status: 400 | 401 | 403 | 404 | 409 | 413 | 429 | 500 | 503 | 504;
  readonly message: string;
  /** The wrong parameter; undefined = none in particular. */
  readonly param: string | undefined;
  /** For programs, such as `context_length_exceeded`, `session_over`; undefined = none. */
  readonly code: string | undefined;
}
