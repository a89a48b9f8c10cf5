/**
 * A view of a run that is computed from its events, by pure functions.
 */

import type { RolloutTroubles, RunEvent, RunState } from "@hone/proto-gen/run";
import { RunPhase } from "@hone/proto-gen/run";

/** One committed step. */
export interface StepRecord {
  readonly step: number;
  readonly timeMs: number;
  readonly metrics: Readonly<Record<string, number>>;
  /** What went wrong in its rollouts; undefined = nothing did. */
  readonly troubles?: RolloutTroubles | undefined;
}

/** One evaluation on held-out tasks. */
export interface EvaluationRecord {
  readonly version: number;
  /** `sampled` (the run's temperature) or `greedy`. */
  readonly mode: string;
  readonly episodes: number;
  readonly metrics: Readonly<Record<string, number>>;
  /** What went wrong in its rollouts; undefined = nothing did. */
  readonly troubles?: RolloutTroubles | undefined;
}

export interface Progress {
  readonly done: number;
  readonly total: number;
}

export interface RunView {
  readonly runId: string;
  readonly phase: RunPhase;
  readonly waitingFor: string;
  readonly totalSteps: number;
  readonly steps: readonly StepRecord[];
  readonly evaluations: readonly EvaluationRecord[];
  /** Rollouts of the step or evaluation under way. */
  readonly rollouts: Progress | undefined;
  readonly warmStart:
    | { readonly rollouts: Progress; readonly updates: Progress; readonly loss: number }
    | undefined;
  readonly ended:
    | { readonly phase: RunPhase; readonly reason: string; readonly checkpoint: string }
    | undefined;
}

export function newRunView(runId: string): RunView {
  return {
    runId,
    phase: RunPhase.WAITING,
    waitingFor: "",
    totalSteps: 0,
    steps: [],
    evaluations: [],
    rollouts: undefined,
    warmStart: undefined,
    ended: undefined,
  };
}

/** The view after an event. An event that a restarted trainer publishes again has no second effect. */
export function afterEvent(view: RunView, event: RunEvent): RunView {
  const { kind } = event;
  switch (kind.case) {
    case "accepted":
      return { ...view, totalSteps: stepsOf(kind.value.configJson) };
    case "phaseChanged":
      return { ...view, phase: kind.value.phase, waitingFor: kind.value.waitingFor, rollouts: undefined };
    case "stepProgress":
      return {
        ...view,
        rollouts: { done: kind.value.rolloutsDone, total: kind.value.rolloutsTotal },
      };
    case "warmStartProgress": {
      const { rolloutsDone, rolloutsTotal, updatesDone, updatesTotal, loss } = kind.value;
      return {
        ...view,
        warmStart: {
          rollouts: { done: rolloutsDone, total: rolloutsTotal },
          updates: { done: updatesDone, total: updatesTotal },
          loss,
        },
      };
    }
    case "stepCompleted": {
      const { step, totalSteps, metrics, troubles } = kind.value;
      const record = { step, timeMs: Number(event.timeMs), metrics, troubles };
      const steps = [...view.steps.filter((other) => other.step !== step), record];
      return { ...view, totalSteps, steps: steps.sort((a, b) => a.step - b.step), rollouts: undefined };
    }
    case "evaluated": {
      const { version, mode, episodes, metrics, troubles } = kind.value;
      const others = view.evaluations.filter((each) => each.version !== version || each.mode !== mode);
      return {
        ...view,
        evaluations: [...others, { version, mode, episodes, metrics, troubles }],
        rollouts: undefined,
      };
    }
    case "ended":
      return { ...view, phase: kind.value.phase, waitingFor: "", rollouts: undefined, ended: kind.value };
    case "resumed":
      return { ...view, phase: RunPhase.WAITING, waitingFor: "", rollouts: undefined, ended: undefined };
    default:
      return view;
  }
}

/** The view with the wait in the run's state, the only place that shows waits before the run is accepted. */
export function afterState(
  view: RunView,
  { phase, waitingFor }: Pick<RunState, "phase" | "waitingFor">,
): RunView {
  const isWaiting = view.phase === RunPhase.WAITING && phase === RunPhase.WAITING;
  return isWaiting ? { ...view, waitingFor } : view;
}

/** Milliseconds until the last step at the pace of the newest steps; undefined before the second step. */
export function timeLeftMs(view: RunView): number | undefined {
  const recent = view.steps.slice(-PACE_STEPS);
  const last = recent.at(-1);
  const gaps = recent.slice(1).map((record, index) => record.timeMs - (recent[index]?.timeMs ?? 0));
  const median = gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)];
  if (last === undefined || median === undefined) return undefined;
  const working = gaps.filter((gap) => gap <= median * MAX_GAP);
  const perStep = working.reduce((sum, gap) => sum + gap, 0) / working.length;
  return perStep * (view.totalSteps - last.step);
}

/** Number of steps that the pace is computed from, so many that an evaluation among them averages out. */
const PACE_STEPS = 20;
/** A gap longer than this multiple of the median is not counted: the run was paused, or its stack was down. */
const MAX_GAP = 20;

function stepsOf(configJson: string): number {
  const config = JSON.parse(configJson) as { trainer?: { steps?: number } };
  return config.trainer?.steps ?? 0;
}
