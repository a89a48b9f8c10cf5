/** What a run of the comparison reached, and the table of all. */

import { meanOf } from "@hone/rl";

/** What `hone evaluations --json` prints, as far as it is read here. */
interface FoundRun {
  readonly steps: readonly Figures[];
  readonly evaluations: readonly (Figures & { readonly version: number })[];
}

interface Figures {
  readonly metrics: Readonly<Record<string, number>>;
}

export interface Measured {
  /** Held-out success after so many episodes of training. */
  readonly curve: readonly { readonly episodes: number; readonly success: number }[];
  readonly steps: number;
  /** Episodes that were played in training, whether they were trained or not. */
  readonly episodes: number;
  /** Of all steps, without evaluations. */
  readonly seconds: number;
  readonly secondsOfTraining: number;
}

export function measuredOf({ steps, evaluations }: FoundRun): Measured {
  const sumOf = (name: string, count = steps.length) =>
    steps.slice(0, count).reduce((sum, { metrics }) => sum + (metrics[name] ?? 0), 0);
  return {
    curve: evaluations.map(({ version, metrics }) => ({
      episodes: sumOf("episodes", version),
      success: metrics.success ?? 0,
    })),
    steps: steps.length,
    episodes: sumOf("episodes"),
    seconds: Math.round(sumOf("time/step_ms") / 1_000),
    secondsOfTraining: Math.round(sumOf("time/train_ms") / 1_000),
  };
}

/** The runs of an algorithm, one for each seed. */
export type NamedRuns = readonly [name: string, runs: readonly Measured[]];

/** The best first, by what they reached at the end. */
export function byResult(measured: readonly NamedRuns[]): NamedRuns[] {
  return [...measured].sort(([, a], [, b]) => resultOf(b) - resultOf(a));
}

/** Mean held-out success at the end. */
export function resultOf(runs: readonly Measured[]): number {
  return meanOf(runs.map(({ curve }) => curve.at(-1)?.success ?? 0));
}

/** The curve of the mean over runs, at the places of the first one. */
export function meanCurve(runs: readonly Measured[]): Measured["curve"] {
  return (runs[0]?.curve ?? []).map((_, place) => ({
    episodes: meanOf(runs.map(({ curve }) => curve[place]?.episodes ?? 0)),
    success: meanOf(runs.map(({ curve }) => curve[place]?.success ?? 0)),
  }));
}

/** A table in Markdown. Of several runs it gives means, and the interval that holds the true mean with 95 % confidence. */
export function resultTable(measured: readonly NamedRuns[]): string {
  const rows = byResult(measured).map(([name, runs]) => {
    const mean = (value: (run: Measured) => number) => meanOf(runs.map(value));
    const atHalf = runs.map(
      ({ curve, episodes }) => curve.findLast((at) => at.episodes <= episodes / 2)?.success ?? 0,
    );
    const atEnd = runs.map(({ curve }) => curve.at(-1)?.success ?? 0);
    const cells = [
      `\`${name}\``,
      withInterval(atHalf),
      `**${withInterval(atEnd)}**`,
      String(runs.length),
      Math.round(mean(({ episodes }) => episodes)).toLocaleString("en"),
      `${Math.round(mean(({ seconds }) => seconds))} s`,
      `${Math.round(mean(({ secondsOfTraining }) => secondsOfTraining))} s`,
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return [
    "| algorithm | success at half of the episodes | at the end | runs | episodes | time of all steps | of it training |",
    "| --- | --- | --- | --- | --- | --- | --- |",
    ...rows,
  ].join("\n");
}

/** Student's t for 95 % by runs, from 2 to 10. */
const STUDENT_T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

function withInterval(values: readonly number[]): string {
  const mean = meanOf(values);
  const t = STUDENT_T[values.length - 2];
  if (t === undefined) return mean.toFixed(2);
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  return `${mean.toFixed(2)} ± ${(t * Math.sqrt(variance / values.length)).toFixed(2)}`;
}
