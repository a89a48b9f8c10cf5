/**
 * What a sink of metrics writes of a fact: the figures of one step or of one evaluation, by the names that users of other RL
 * systems look for.
 *
 * The names are verl's where Hone's figure is the same quantity (metric-names.json, which the Python sidecar reads too); all
 * others keep Hone's own name:
 *   time/<phase>_ms   timing_s/<phase>, in seconds
 *   a name without /  env/<name>: figures of agents and environments, such as success
 *   evaluations       val/<mode>/<Hone's name>
 *
 * Names come from agents and judges too, so every other character than letters, digits, "_", "-", "." and "/" becomes "_", and
 * no part of a name is empty or consists of dots: MLflow refuses such names, and receivers of OTLP change them.
 */

import type { RunFact } from "../domain/run-event.ts";
import table from "./metric-names.json" with { type: "json" };

/** The figures of one step or one evaluation. */
export interface MetricPoints {
  readonly runId: string;
  /** `train`, or `val/<mode>` for an evaluation. */
  readonly series: string;
  /** The step, or the policy version that was evaluated, which is the number of the step that made it. */
  readonly step: number;
  readonly timeMs: number;
  /** Finite numbers by name, sorted by name, so that the same fact always gives the same bytes. */
  readonly values: ReadonlyArray<readonly [name: string, value: number]>;
}

/** The series of a run's steps. */
export const TRAIN_SERIES = "train";
/** MLflow allows 250 characters, OpenTelemetry 255. */
const MAX_NAME = 240;
const NAMES: Readonly<Record<string, string | undefined>> = table.names;
const MILLISECONDS = /^time\/.+_ms$/;
const MS_PER_SECOND = 1_000;

/** @returns undefined for a fact that is neither a step nor an evaluation. */
export function pointsOf(fact: RunFact): MetricPoints | undefined {
  const { runId, timeMs } = fact;
  if (fact.kind === "step_completed")
    return { runId, series: TRAIN_SERIES, step: fact.step, timeMs, values: named(fact.metrics, trainName) };
  if (fact.kind !== "evaluated") return undefined;
  const series = `val/${allowed(fact.mode)}`;
  const values = named(fact.metrics, (name) => `${series}/${name}`);
  return { runId, series, step: fact.version, timeMs, values };
}

/** The name under which sinks show a figure of a step. */
export function trainName(name: string): string {
  const known = NAMES[name];
  if (known !== undefined) return known;
  if (MILLISECONDS.test(name)) return `timing_s/${name.slice("time/".length, -"_ms".length)}`;
  return name.includes("/") ? name : `${table.ungrouped}${name}`;
}

/** Leaves out what is not finite, and all but the first of several figures that would have one name. */
function named(
  metrics: Readonly<Record<string, number | null>>,
  nameOf: (name: string) => string,
): [string, number][] {
  const values = new Map<string, number>();
  for (const name of Object.keys(metrics).toSorted()) {
    const value = metrics[name];
    const shown = allowed(nameOf(name));
    if (value === null || value === undefined || !Number.isFinite(value) || values.has(shown)) continue;
    values.set(shown, MILLISECONDS.test(name) ? value / MS_PER_SECOND : value);
  }
  return [...values].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

function allowed(name: string): string {
  return name
    .slice(0, MAX_NAME)
    .split("/")
    .map((part) => part.replaceAll(/[^\w.-]/g, "_"))
    .map((part) => (/^\.*$/.test(part) ? `_${part}` : part))
    .join("/");
}
