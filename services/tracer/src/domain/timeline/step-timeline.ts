/**
 * Who worked when in one step: the trainer, by the times of the step's metrics, and engines, agents, tools and judges, by the
 * spans of rollouts. In an asynchronous run these are all rollouts that were under way while the step ran, whichever step
 * trains them.
 *
 * Times of different machines are compared, so their clocks must agree.
 */

import { SpanName } from "@hone/telemetry";
import type { StepFigures } from "../series.ts";
import type { SpanTime } from "./span-times.ts";

/** What the trainer does in a step, in this order. */
export const TrainerPhase = {
  /** It waits for rollouts. */
  wait: "wait",
  /** It computes what the loss needs before the updates, such as values and the reference. */
  score: "score",
  train: "train",
  /** It writes the state files and the ledger. */
  commit: "commit",
  /** It publishes the version. */
  publish: "publish",
} as const;
export type TrainerPhase = (typeof TrainerPhase)[keyof typeof TrainerPhase];

export const LaneKind = {
  /** Generations of one replica. */
  engine: "engine",
  /** Rollouts that are being played. */
  agents: "agents",
  /** Calls of tools and environments. */
  tools: "tools",
  judge: "judge",
} as const;
export type LaneKind = (typeof LaneKind)[keyof typeof LaneKind];

/** Work of one kind over the time of the step. */
export interface Lane {
  readonly kind: LaneKind;
  /** The replica of an engine; otherwise empty. */
  readonly name: string;
  /** Share of the step in which anything was at work, 0 to 1. */
  readonly busyShare: number;
  /** The largest number that was at work at once. */
  readonly most: number;
  /** How many were at work on average in each of {@link BINS} equal parts of the step. */
  readonly counts: readonly number[];
}

export interface StepTimeline {
  readonly step: number;
  /** Unix milliseconds. */
  readonly beganAtMs: number;
  readonly durationMs: number;
  /** Milliseconds from the begin of the step. */
  readonly phases: ReadonlyArray<{
    readonly name: TrainerPhase;
    readonly fromMs: number;
    readonly toMs: number;
  }>;
  /** Those in which anything was at work: engines by their names, then agents, tools, judge. */
  readonly lanes: readonly Lane[];
}

/** Narrower than this, parts could not be told apart on a screen. */
export const BINS = 240;

/** @returns when a step was; undefined where its figures do not tell, as when its trainer died right after the commit. */
export function stepTimes({
  timeMs,
  metrics,
}: StepFigures): { readonly beganAtMs: number; readonly durationMs: number } | undefined {
  const durationMs = metrics["time/step_ms"] ?? 0;
  return durationMs > 0 ? { beganAtMs: timeMs - durationMs, durationMs } : undefined;
}

/** @param spans those of the rollouts that may have been under way. @returns undefined where {@link stepTimes} is. */
export function stepTimeline(figures: StepFigures, spans: readonly SpanTime[]): StepTimeline | undefined {
  const times = stepTimes(figures);
  if (times === undefined) return undefined;
  const { beganAtMs, durationMs } = times;
  const work = new Map<string, { kind: LaneKind; name: string; intervals: Interval[] }>();
  for (const { name: spanName, instance, fromMs, toMs } of spans) {
    const kind = laneOf(spanName);
    const from = Math.max(0, fromMs - beganAtMs);
    const to = Math.min(durationMs, toMs - beganAtMs);
    if (kind === undefined || to <= from) continue;
    const name = kind === LaneKind.engine ? instance : "";
    const key = `${kind}/${name}`;
    const lane = work.get(key) ?? { kind, name, intervals: [] };
    work.set(key, lane);
    lane.intervals.push({ from, to });
  }
  const order = Object.values(LaneKind);
  return {
    step: figures.step,
    beganAtMs,
    durationMs,
    phases: phasesOf(figures),
    lanes: [...work.values()]
      .toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || (a.name < b.name ? -1 : 1))
      .map(({ kind, name, intervals }) => ({ kind, name, ...summaryOf(intervals, durationMs) })),
  };
}

/** Milliseconds from the begin of the step, within it. */
interface Interval {
  readonly from: number;
  readonly to: number;
}

/** @returns undefined for spans that are no work of their own, such as a model call, which waits for an engine. */
function laneOf(spanName: string): LaneKind | undefined {
  switch (spanName) {
    case SpanName.enginePrefill:
    case SpanName.engineDecode:
      return LaneKind.engine;
    case SpanName.environmentReset:
    case SpanName.environmentStep:
    case SpanName.environmentFinish:
      return LaneKind.tools;
    case SpanName.judge:
      return LaneKind.judge;
    default:
      if (spanName.startsWith(SpanName.executeTool(""))) return LaneKind.tools;
      return spanName.startsWith(SpanName.invokeAgent("")) ? LaneKind.agents : undefined;
  }
}

/** The phases follow each other from the begin of the step; `score` is the first part of time/train_ms. */
function phasesOf({ metrics }: StepFigures): StepTimeline["phases"] {
  const ms = (name: string) => metrics[`time/${name}_ms`] ?? 0;
  const durations: [TrainerPhase, number][] = [
    [TrainerPhase.wait, ms("rollout")],
    [TrainerPhase.score, ms("score")],
    [TrainerPhase.train, ms("train") - ms("score")],
    [TrainerPhase.commit, ms("commit")],
    [TrainerPhase.publish, ms("publish")],
  ];
  let at = 0;
  return durations.flatMap(([name, tookMs]) => {
    const fromMs = at;
    at += tookMs;
    return tookMs > 0 ? [{ name, fromMs, toMs: at }] : [];
  });
}

function summaryOf(
  intervals: readonly Interval[],
  durationMs: number,
): Pick<Lane, "busyShare" | "most" | "counts"> {
  // At the same time ends come before begins, so that work that follows other work is not counted as beside it.
  const changes = intervals
    .flatMap(({ from, to }) => [
      { at: from, by: 1 },
      { at: to, by: -1 },
    ])
    .sort((a, b) => a.at - b.at || a.by - b.by);
  const binMs = durationMs / BINS;
  const workMs = new Float64Array(BINS);
  let busyMs = 0;
  let most = 0;
  let atWork = 0;
  let last = 0;
  for (const { at, by } of changes) {
    if (atWork > 0) {
      busyMs += at - last;
      spread(workMs, last, at, atWork, binMs);
    }
    last = at;
    atWork += by;
    most = Math.max(most, atWork);
  }
  return {
    busyShare: busyMs / durationMs,
    most,
    counts: Array.from(workMs, (ms) => Number((ms / binMs).toFixed(2))),
  };
}

/** Adds the work of `count` from one time to another to the bins between them. */
function spread(workMs: Float64Array, from: number, to: number, count: number, binMs: number): void {
  const last = Math.min(workMs.length - 1, Math.floor(to / binMs));
  for (let bin = Math.min(last, Math.floor(from / binMs)); bin <= last; bin++) {
    workMs[bin]! += count * Math.max(0, Math.min(to, (bin + 1) * binMs) - Math.max(from, bin * binMs));
  }
}
