/** The port through which a debugger observes an attempt. */

import type { ChatMessage, ChatTool, ChatToolCall } from "@hone/tokenizer";
import type { EnvironmentReset, EnvironmentStep } from "../definitions/environment.ts";
import type { PolicyGeneration } from "../policies/policy.ts";
import type { ToolReply } from "../tools/tool.ts";
import type { RecordedTurn } from "./conversation.ts";

/** One model call with its answer. */
export interface ObservedCall {
  readonly turn: RecordedTurn;
  /** Everything that the model was shown, as messages and as tokens. */
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ChatTool[];
  readonly promptIds: readonly number[];
  readonly generation: PolicyGeneration;
  /** Whether the answer is trained; false for a role that does not learn. */
  readonly isTrained: boolean;
}

/** Its methods are called in the order of events of an attempt, and cannot influence it. */
export interface RolloutObserver {
  /** An attempt begins. @param attempt its number, from 1. */
  onAttempt(attempt: number): void;
  onAnswer(call: ObservedCall): void;
  /** @param turn the turn whose answer contains the call; undefined before the first turn. */
  onToolReply(call: ChatToolCall, reply: ToolReply, turn: RecordedTurn | undefined): void;
  /** An error ended the attempt. */
  onFailure(error: unknown): void;
  onReset(reset: EnvironmentReset): void;
  /** @param turn the turn that acted. */
  onStep(answer: string, step: EnvironmentStep, turn: RecordedTurn | undefined): void;
  /** The environment ended an episode that was still open. @param reward goes to the turn that acted last. */
  onFinish(reward: number): void;
}
