/** The port through which agents reach whatever writes their tokens: replicas of the policy, or a script in its place. */

import type { VersionSpan } from "@hone/rl";
import type { Context } from "@hone/telemetry";
import type { ChatMessage, ChatTool } from "@hone/tokenizer";

/** The parameters of the sampling distribution. */
export interface SamplingParameters {
  /** 0 = always the most likely token. */
  readonly temperature: number;
  readonly topP: number;
  /** 0 = all tokens. */
  readonly topK: number;
  /** Least probability of a token, as a share of the most likely one's. @default 0 */
  readonly minP?: number;
  /** @default 1, none */
  readonly repetitionPenalty?: number;
  /** Most tokens sampled in one turn. */
  readonly maxNewTokens: number;
}

/** One model call. */
export interface GenerateCall {
  /** Name of the served model; in a run, the run id. */
  readonly model: string;
  readonly requestId: string;
  /** Whole context, verbatim. */
  readonly promptIds: readonly number[];
  /** The same as messages, and the tools that it shows, for a model that takes no tokens. */
  readonly messages?: readonly ChatMessage[];
  readonly tools?: readonly ChatTool[];
  readonly sampling: SamplingParameters;
  readonly stopTokenIds: readonly number[];
  readonly seed: number;
  /** Conversation whose K/V may be kept for its next turn. */
  readonly sessionId: string;
  /** Group that shares a prompt. */
  readonly groupId: string;
  readonly lowestVersion: number;
  readonly highestVersion: number;
  /** Longest time that generating itself may take; waits for a replica do not count. */
  readonly deadlineMs: number;
  readonly trace: Context;
  readonly signal: AbortSignal;
  /** Aborts when what was told is enough: the policy stops, and what it made is the answer, `aborted`. */
  readonly enough?: AbortSignal;
  /** Told of tokens as they are made, each once and in order; what is told may stop short of the whole answer. */
  readonly onTokens?: (tokenIds: readonly number[]) => void;
}

/** Why a generation ended. */
export const FinishReason = {
  /** A stop token was sampled; it is the last of the ids. */
  stop: "stop",
  /** The most tokens allowed were sampled. */
  length: "length",
  /** A text that the agent asked for stood in the answer; its last token is the one that completed it. */
  stopText: "stop_text",
  /** The engine gave up before either, at the deadline for one. */
  aborted: "aborted",
} as const;
export type FinishReason = (typeof FinishReason)[keyof typeof FinishReason];

/** What was written. N tokens. */
export interface Generation {
  /** [N] every sampled token in order, the stop token included. */
  readonly tokenIds: readonly number[];
  /** [N] log-probability of each under the sampling distribution; empty when a script wrote them. */
  readonly logprobs: readonly number[];
  /** Policy versions of the tokens, in order; empty when a script wrote them. */
  readonly versions: readonly VersionSpan[];
  readonly finishReason: FinishReason;
  /** Prompt tokens whose K/V was there already. */
  readonly cachedTokens: number;
  /** Time that counts as the attempt's own: what the engine worked on it, queues and failed tries left out. */
  readonly generationMs: number;
  /** Who answered; empty for a script. */
  readonly replica: string;
}

export interface Policy {
  /**
   * @throws {PolicyUnavailableError} when no replica served for as long as a call may wait.
   * @throws {PolicyStaleError | PolicyRefusedError} when asking again cannot help.
   * @throws {DeadlineError} when generating took longer than `deadlineMs`.
   * @throws the reason of the signal when it aborts.
   */
  generate(call: GenerateCall): Promise<Generation>;
}
