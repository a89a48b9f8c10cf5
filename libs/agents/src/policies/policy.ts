/** The port through which agents reach whatever writes their tokens: replicas of the policy, or a script in its place. */

import type { Generation, SamplingParameters } from "@hone/rl";
import type { Context } from "@hone/telemetry";
import type { ChatMessage, ChatTool } from "@hone/tokenizer";

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

/** What a policy wrote. A script has neither log-probabilities nor versions. */
export interface PolicyGeneration extends Generation {
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
  generate(call: GenerateCall): Promise<PolicyGeneration>;
}
