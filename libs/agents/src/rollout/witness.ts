/** Looking on at an attempt, as a debugger does. */

import type { ChatMessage, ChatTool, ChatToolCall } from "@hone/tokenizer";
import type { EnvironmentReset, EnvironmentStep } from "../definitions/environment.ts";
import type { PolicyGeneration } from "../policies/policy.ts";
import type { ToolReply } from "../tools/tool.ts";
import type { RecordedTurn } from "./conversation.ts";

/** One model call with its answer. */
export interface WitnessedCall {
  readonly turn: RecordedTurn;
  /** All that the model was shown, as messages and as tokens. */
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ChatTool[];
  readonly promptIds: readonly number[];
  readonly generation: PolicyGeneration;
  /** Whether the answer is trained: not that of a role that does not learn. */
  readonly isTrained: boolean;
}

/** Told of what happens in an attempt, as it happens and in its order; what it does changes nothing. */
export interface RolloutWitness {
  /** An attempt begins, from 1. */
  onAttempt(attempt: number): void;
  onAnswer(call: WitnessedCall): void;
  /** @param turn whose answer held the call; undefined before the first. */
  onToolReply(call: ChatToolCall, reply: ToolReply, turn: RecordedTurn | undefined): void;
  /** What ended the attempt, other than its agent's return. */
  onFailure(error: unknown): void;
  onReset(reset: EnvironmentReset): void;
  /** @param turn that acted. */
  onStep(answer: string, step: EnvironmentStep, turn: RecordedTurn | undefined): void;
}
