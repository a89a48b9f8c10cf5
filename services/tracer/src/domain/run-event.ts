/**
 * Turns events of runs into the facts that are stored.
 *
 * Events may come twice and, as several are processed at once, in any order. So a fact is either about something that
 * happens once, and is inserted where it is missing, or it has its position in the stream, and an older one changes nothing.
 */

import { parseJson, TerminalError } from "@hone/core";
import type { RunEvent, RunEvent_WarmStartProgress } from "@hone/proto-gen/run";
import { phaseWord, type RunPhase } from "./run-phase.ts";
import type { RunProgress } from "./run-progress.ts";

export type RunFact = { readonly runId: string; readonly sequence: number; readonly timeMs: number } & (
  | {
      readonly kind: "accepted";
      /** The resolved run file. */
      readonly configJson: string;
    }
  | {
      readonly kind: "refused";
      readonly requestSequence: number;
      readonly problems: ReadonlyArray<{ readonly key: string; readonly message: string }>;
    }
  | { readonly kind: "step_begun"; readonly step: number }
  | { readonly kind: "progress"; readonly step: number; readonly progress: RunProgress }
  | {
      readonly kind: "step_completed";
      readonly step: number;
      readonly totalSteps: number;
      readonly version: number;
      readonly metrics: Readonly<Record<string, number | null>>;
    }
  | {
      readonly kind: "evaluated";
      readonly version: number;
      readonly mode: string;
      readonly episodes: number;
      readonly metrics: Readonly<Record<string, number | null>>;
    }
  | {
      readonly kind: "ended";
      readonly phase: RunPhase;
      readonly reason: string;
      readonly checkpoint: string;
      /** How often it had been resumed after a failure. */
      readonly resumption: number;
    }
  | { readonly kind: "resumed"; readonly resumption: number }
  /** The total number, including rollouts of earlier events. */
  | { readonly kind: "unread"; readonly rollouts: number }
);

/** @returns the fact of an event, or undefined for an event of an unknown kind, as a newer version may send. */
export function factOf(event: RunEvent, sequence: number): RunFact | undefined {
  const base = { runId: storable(event.runId), sequence, timeMs: Number(event.timeMs) };
  switch (event.kind.case) {
    case "accepted":
      return { ...base, kind: "accepted", configJson: storable(event.kind.value.configJson) };
    case "refused": {
      const { requestSequence, problems } = event.kind.value;
      return {
        ...base,
        kind: "refused",
        requestSequence: Number(requestSequence),
        problems: problems.map(({ key, message }) => ({ key: storable(key), message: storable(message) })),
      };
    }
    case "phaseChanged":
      return { ...base, kind: "step_begun", step: event.kind.value.step };
    case "stepProgress": {
      const { step, rolloutsDone, rolloutsTotal } = event.kind.value;
      const progress = { kind: "rollouts", step, done: rolloutsDone, total: rolloutsTotal } as const;
      return { ...base, kind: "progress", step, progress };
    }
    case "warmStartProgress":
      return { ...base, kind: "progress", step: 0, progress: warmStartOf(event.kind.value) };
    case "stepCompleted": {
      const { step, totalSteps, version, metrics } = event.kind.value;
      return { ...base, kind: "step_completed", step, totalSteps, version, metrics: finiteMetrics(metrics) };
    }
    case "evaluated": {
      const { version, mode, episodes, metrics } = event.kind.value;
      return {
        ...base,
        kind: "evaluated",
        version,
        mode: storable(mode),
        episodes,
        metrics: finiteMetrics(metrics),
      };
    }
    case "ended": {
      const { phase, reason, checkpoint, resumption } = event.kind.value;
      return {
        ...base,
        kind: "ended",
        phase: phaseWord(phase),
        reason: storable(reason),
        checkpoint: storable(checkpoint),
        resumption,
      };
    }
    case "resumed":
      return { ...base, kind: "resumed", resumption: event.kind.value.resumption };
    case "rolloutsUnread":
      return { ...base, kind: "unread", rollouts: Number(event.kind.value.rollouts) };
    case undefined:
      return undefined;
  }
}

/** The largest number that a column of type integer holds. */
export const MAX_COLUMN = 2 ** 31 - 1;
/** Fields with wider columns; they are limited by JavaScript's safe integers. */
const WIDE: ReadonlySet<string> = new Set(["sequence", "timeMs", "requestSequence", "rollouts"]);

/** @throws {TerminalError} when the database cannot hold the fact. */
export function checkStorable(fact: RunFact): void {
  for (const [name, value] of Object.entries(fact)) {
    const most = WIDE.has(name) ? Number.MAX_SAFE_INTEGER : MAX_COLUMN;
    if (typeof value !== "number" || value <= most) continue;
    throw new TerminalError(
      "TOO_LARGE",
      `an event cannot be stored: its ${name} is ${value}, and at most ${most} is allowed`,
    );
  }
  if (fact.kind === "accepted" && jsonObjectOf(fact.configJson) === undefined) {
    throw new TerminalError("NO_RUN_FILE", "an event cannot be stored: its run file is not a JSON object");
  }
}

/** The value of a JSON text if that is an object; undefined for anything else. */
export function jsonObjectOf(json: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = parseJson(json);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** JSON has no NaN and no infinity, so such a metric becomes null, which the page shows as missing. */
export function finiteMetrics(metrics: Readonly<Record<string, number>>): Record<string, number | null> {
  return Object.fromEntries(
    Object.entries(metrics).map(([name, value]) => [storable(name), Number.isFinite(value) ? value : null]),
  );
}

/** Replaces the character NUL, which a text of PostgreSQL cannot hold. */
export function storable(text: string): string {
  return text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text;
}

function warmStartOf(progress: RunEvent_WarmStartProgress): RunProgress {
  const { rolloutsDone, rolloutsTotal, updatesDone, updatesTotal, loss } = progress;
  return {
    kind: "warm_start",
    rolloutsDone,
    rolloutsTotal,
    updatesDone,
    updatesTotal,
    loss: Number.isFinite(loss) ? loss : null,
  };
}
