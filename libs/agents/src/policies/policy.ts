/** The port through which agents get their tokens: from replicas of the policy, or from a script in its place. */

import type { Generation, OnNewVersion, SamplingParameters } from "@hone/rl";
import type { Context } from "@hone/telemetry";
import type { ChatMessage, ChatTool } from "@hone/tokenizer";

/** One model call. */
export interface GenerateCall {
  /** Name of the served model; in a run, the run id. */
  readonly model: string;
  readonly requestId: string;
  /** The whole context, verbatim. */
  readonly promptIds: readonly number[];
  /** The same context as messages, and the tools that it shows, for a model that does not take tokens. */
  readonly messages?: readonly ChatMessage[];
  readonly tools?: readonly ChatTool[];
  readonly sampling: SamplingParameters;
  readonly stopTokenIds: readonly number[];
  readonly seed: number;
  /** Identifies the conversation, whose keys and values may be kept for its next turn. */
  readonly sessionId: string;
  /** Identifies the group of rollouts that share a prompt. */
  readonly groupId: string;
  readonly lowestVersion: number;
  readonly highestVersion: number;
  /** The call ends as stale once the policy is more than this many versions ahead of its first token. @default it never does */
  readonly maxStaleness?: number | undefined;
  /** What happens to the call when a newer version is loaded that may go on with it. @default recompute */
  readonly onNewVersion?: OnNewVersion;
  /** Longest time that the generation itself may take; waiting for a replica does not count. */
  readonly deadlineMs: number;
  readonly trace: Context;
  readonly signal: AbortSignal;
  /** Stops the policy early: the answer is what was generated so far, with the finish reason `aborted`. */
  readonly stopSignal?: AbortSignal;
  /** Called with new tokens as they are generated, each once and in order. The last tokens of the answer may be missing. */
  readonly onTokens?: (tokenIds: readonly number[]) => void;
}

/** What a policy wrote. A script has neither log-probabilities nor versions. */
export interface PolicyGeneration extends Generation {
  /** Prompt tokens whose keys and values were in the cache. */
  readonly cachedTokens: number;
  /** Time that counts against the attempt: the engine's work on the call, without queues and failed tries. */
  readonly generationMs: number;
  /** Name of the replica that answered; empty for a script. */
  readonly replica: string;
}

export interface Policy {
  /**
   * @throws {PolicyUnavailableError} when no replica was available for as long as a call may wait.
   * @throws {PolicyStaleError | PolicyRefusedError} when another try cannot help.
   * @throws {DeadlineError} when the generation took longer than `deadlineMs`.
   * @throws the reason of the signal when it aborts.
   */
  generate(call: GenerateCall): Promise<PolicyGeneration>;
}
