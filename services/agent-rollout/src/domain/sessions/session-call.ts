/**
 * What an agent asks of the model through its session, and what it is answered, in no API's words: every wire format
 * (`http/dialects/`) is read into a {@link SessionRequest} and written from {@link ReplyEvent}s or a {@link SessionReply}.
 */

import type { ChatMessage, ChatTool } from "@hone/tokenizer";

/** One call of the model. */
export interface SessionRequest {
  /** As the agent names it: a role of the run, or any name where the run has no roles. */
  readonly model: string;
  /**
   * At least one, as chat templates read them: content is text (parts joined, absent = ""); an answer's calls have their
   * arguments as an object; what a tool says is a message of its own, with the id of its call. A developer's message is
   * the system's.
   */
  readonly messages: readonly ChatMessage[];
  /** Empty = the model is shown none. */
  readonly tools: readonly ChatTool[];
  /** Sampling is never steered: `none` hides the tools, the others are as `auto`. */
  readonly toolChoice: "auto" | "none" | "required" | { readonly name: string };
  /** Most tokens of the answer, at least 1; the run's own limit holds beside it. Undefined = that of the run. */
  readonly maxNewTokens: number | undefined;
  /** What the agent asks for, where it does. The run's own sampling wins, and the difference is counted. */
  readonly sampling: {
    readonly temperature?: number | undefined;
    readonly topP?: number | undefined;
    readonly topK?: number | undefined;
  };
  /** Texts that end the answer; none of them is empty. The answer that the agent gets ends before the text. */
  readonly stopTexts: readonly string[];
  /** A safe integer. The same call with the same seed gets the same answer within one session. */
  readonly seed: number | undefined;
  readonly isStreamed: boolean;
}

/** Why an answer ended. */
export const ReplyFinish = {
  /** The model ended it. */
  stop: "stop",
  /** One of the stop texts stood in it. */
  stopText: "stop_text",
  /** It calls tools. */
  toolCalls: "tool_calls",
  /** The most tokens allowed were sampled. */
  length: "length",
} as const;
export type ReplyFinish = (typeof ReplyFinish)[keyof typeof ReplyFinish];

export interface ReplyUsage {
  readonly inputTokens: number;
  /** Those of the input whose K/V was there already. */
  readonly cachedTokens: number;
  /** All that were sampled, the stop token included. */
  readonly outputTokens: number;
}

/** A call of a tool. */
export interface ReplyCall {
  /** Unique within the session: `c` and eight letters and digits. */
  readonly id: string;
  readonly name: string;
  /** An object as JSON text. */
  readonly argumentsJson: string;
}

/** A whole answer. */
export interface SessionReply {
  /** The text beside the calls; empty where there is none. */
  readonly text: string;
  readonly calls: readonly ReplyCall[];
  readonly finish: ReplyFinish;
  /** Which of the stop texts ended it; undefined for other ends. */
  readonly stopText: string | undefined;
  readonly usage: ReplyUsage;
  /** The record of this call, for whoever asks for token ids. */
  readonly tokens: ReplyTokens;
}

export interface ReplyTokens {
  /** The whole context. */
  readonly promptIds: readonly number[];
  /** [N] what was sampled, the stop token included. */
  readonly tokenIds: readonly number[];
  /** [N]; empty where the model outside told none. */
  readonly logprobs: readonly number[];
}

/**
 * A streamed answer, in this order: `begin`, any number of `text`, then for each call `call_begin`, one or more
 * `call_arguments` and `call_end`, then `end`. The texts joined are the reply's text, the arguments joined the call's.
 * A failure after `begin` ends the stream without `end`: see `ReplyWriter.failure`.
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
  /** The whole answer once more, with why it ended. */
  | { readonly kind: "end"; readonly reply: SessionReply };

/** Why a call has no answer. The status says what kind of failure it is. */
export interface SessionFailure {
  /**
   * 400 the request, 401 no or a wrong credential, 403 not allowed, 404 no such session, route or model, 413 too large,
   * 429 too much at once, 500 this service, 503 may work later, 504 out of time.
   */
  readonly status: 400 | 401 | 403 | 404 | 413 | 429 | 500 | 503 | 504;
  readonly message: string;
  /** The parameter that is wrong; undefined = none in particular. */
  readonly param: string | undefined;
  /** For programs, such as `context_length_exceeded`, `session_over`; undefined = none. */
  readonly code: string | undefined;
}
