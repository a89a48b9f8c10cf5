/** What one model call sampled. */

import { TerminalError } from "@hone/core";
import type { VersionSpan } from "./rollout.ts";

/** Why a generation ended. */
export const FinishReason = {
  /** A stop token was sampled; it is the last of the ids. */
  stop: "stop",
  /** The most tokens allowed were sampled, or the model's context is used up. */
  length: "length",
  /** A text that the agent asked for stood in the answer; its last token is the one that completed it. No engine says this. */
  stopText: "stop_text",
  /** It was given up before either: its caller went away, or its time was over. */
  aborted: "aborted",
  /** Its deadline passed. Engines say this; to a rollout such a call was `aborted`. */
  deadline: "deadline",
} as const;
export type FinishReason = (typeof FinishReason)[keyof typeof FinishReason];

const WORDS: ReadonlySet<string> = new Set(Object.values(FinishReason));

/** @throws {TerminalError} when the word from outside is none of the reasons. */
export function readFinishReason(word: string): FinishReason {
  if (WORDS.has(word)) return word as FinishReason;
  throw new TerminalError(
    "UNKNOWN_FINISH_REASON",
    `The finish reason of a turn is ${JSON.stringify(word)}; it must be one of ${[...WORDS].join(", ")}`,
  );
}

/** What happens to a generation under way when a newer version of its model is loaded that may go on with it. */
export const OnNewVersion = {
  /** It goes on with the new weights, which compute its context again. */
  recompute: "recompute",
  /** It goes on with the new weights, on the keys and values that the old ones computed. */
  keep: "keep",
  /** It ends on the weights that it began with, unless that would make it too old. */
  finish: "finish",
} as const;
export type OnNewVersion = (typeof OnNewVersion)[keyof typeof OnNewVersion];

/** How an engine computes the products of a model. */
export const Quantization = {
  /** In the type of its weights. */
  none: "none",
  /** In eight bits: rows of activations and channels of weights are rounded, each with a scale of its own. */
  int8: "int8",
} as const;
export type Quantization = (typeof Quantization)[keyof typeof Quantization];

/** Most tokens of a training pass with gradients in eight bits, which are added up over its tokens in 32 bits. */
export const MAX_QUANTIZED_TOKENS = 65_536;

/** N tokens that one model call sampled. */
export interface Generation {
  /** [N] every sampled token in order, the stop token included. */
  readonly tokenIds: readonly number[];
  /** [N] log-probability of each under the sampling distribution, rounded to float32. */
  readonly logprobs: readonly number[];
  /** Policy versions of the tokens, in order; counts sum to N. */
  readonly versions: readonly VersionSpan[];
  readonly finishReason: FinishReason;
}
