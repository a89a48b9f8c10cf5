/** What the API answers, by the types with which the tracer makes it. */

import type { ChatMessage, ChatPart } from "../../../domain/chat/chat-view.ts";
import type { SampleNode } from "../../../domain/chat/sample-tree.ts";
import type { Evaluation, RolloutDetail, RolloutRow, RunSummary } from "../../../domain/ports.ts";
import type { RolloutView, TokenView, TurnView } from "../../../domain/rollout-view.ts";
import type { Series } from "../../../domain/series.ts";
import type { StackHealth } from "../../../domain/stack-health.ts";

export type {
  ChatMessage,
  ChatPart,
  Evaluation,
  RolloutRow,
  RunSummary,
  SampleNode,
  Series,
  StackHealth,
  TokenView,
  TurnView,
};

/** A rollout as `/api/runs/:run/rollouts/:slot` answers. */
export type RolloutAnswer = Omit<RolloutDetail, "scored" | "spansRemoved"> &
  RolloutView & { readonly runId: string };
