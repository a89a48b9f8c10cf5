/** What the API answers, by the types with which the tracer makes it. */

import type { ChatMessage, ChatPart } from "../../../domain/chat/chat-view.ts";
import type { SampleNode } from "../../../domain/chat/sample-tree.ts";
import type { FramesView, FrameView } from "../../../domain/episode-frames.ts";
import type { SpanView, TraceView } from "../../../domain/otlp/trace-view.ts";
import type { Note } from "../../../domain/people/note.ts";
import type { WaitingRollout } from "../../../domain/people/persons-actions.ts";
import type {
  CommonTask,
  CurvePoint,
  Evaluation,
  Refusal,
  RolloutDetail,
  RolloutRow,
  RunSummary,
  StepTokens,
  TaskRollout,
} from "../../../domain/ports.ts";
import type { RolloutView, TokenView, TurnView } from "../../../domain/rollout-view.ts";
import type { Excerpt } from "../../../domain/search/excerpt.ts";
import type { Series } from "../../../domain/series.ts";
import type { StackHealth } from "../../../domain/stack-health.ts";
import type { StepTimeline } from "../../../domain/timeline/step-timeline.ts";
import type { RolloutFiguresView, StepGradientView } from "../../../domain/token-figures.ts";

export type {
  ChatMessage,
  ChatPart,
  CommonTask,
  Evaluation,
  FramesView,
  FrameView,
  Note,
  Refusal,
  RolloutFiguresView,
  RolloutRow,
  RunSummary,
  SampleNode,
  Series,
  SpanView,
  StackHealth,
  StepGradientView,
  StepTimeline,
  TaskRollout,
  TokenView,
  TraceView,
  TurnView,
  WaitingRollout,
};

/** A rollout as `/api/runs/:run/rollouts/:slot` answers. */
export type RolloutAnswer = Omit<RolloutDetail, "scored" | "spansRemoved"> &
  RolloutView & { readonly runId: string };

/** A run in the list of `/api/runs`. */
export type ListedRun = RunSummary & { readonly curve: readonly CurvePoint[] };

/** A run as `/api/runs/:run` answers. */
export type RunAnswer = RunSummary & {
  readonly removedRollouts: number;
  readonly evaluations: readonly Evaluation[];
  /** The run file; null = its acceptance was not seen. */
  readonly config: Readonly<Record<string, unknown>> | null;
};

/** A rollout in a list; where words were searched, with their place, or null where it cannot be shown. */
export type ListedRollout = RolloutRow & { readonly excerpt?: Excerpt | null };

/** A rollout that waits for a reward, as `/api/runs/:run/waiting/:slot` answers. */
export type WaitingAnswer = WaitingRollout & RolloutView & { readonly runId: string };

/** What `/api/runs/:run/cost` answers. */
export interface CostAnswer {
  readonly steps: readonly StepTokens[];
  /** What an hour of the machines costs; null = not known. */
  readonly price: { readonly perHour: number; readonly currency: string } | null;
}
