/** What the bench of peers finds: figures of Hone's held against a peer's, or against a limit of their own. */

import { formatNumber, formatTable } from "../report/report.ts";
import { summarise } from "../report/summarise.ts";

/** One value a round, or why there is none. */
export type Figures =
  | { readonly kind: "measured"; readonly values: readonly number[] }
  | { readonly kind: "missing"; readonly reason: string };

/** What must be reached, and what should. Ratios are at least this, growth and memory at most. */
export interface Target {
  readonly kind: "at least" | "at most";
  readonly bar: number;
  readonly aim?: number;
}

/** A piece of work, as Hone does it and as a peer does it. */
export interface Comparison {
  /** The work. */
  readonly name: string;
  readonly unit: string;
  /** Which figure is the better one; a ratio above 1 says that Hone's is. */
  readonly better: "higher" | "lower";
  readonly hone: Figures;
  /** Absent where Hone's own figure is held against the target. */
  readonly peer?: { readonly name: string; readonly figures: Figures };
  readonly target: Target;
  /** Of the machine's matrix products, percent, in each round; absent where the work is no throughput. */
  readonly productShare?: readonly number[];
}

/** How a row ended. */
export const Verdict = {
  aim: "aim reached",
  /** Also where there is no aim. */
  bar: "bar reached",
  missed: "BAR MISSED",
  open: "not measured",
} as const;
export type Verdict = (typeof Verdict)[keyof typeof Verdict];

export interface JudgedComparison extends Comparison {
  /** What is held against the target, by round: the ratio where there is a peer, else Hone's figure. */
  readonly figure: Figures;
  readonly verdict: Verdict;
}

/** Ratios compare rounds that stood beside each other. */
export function judge(comparison: Comparison): JudgedComparison {
  const figure = figureOf(comparison);
  return { ...comparison, figure, verdict: verdictOf(figure, comparison.target) };
}

function figureOf({ hone, peer, better }: Comparison): Figures {
  if (peer === undefined || hone.kind === "missing") return hone;
  if (peer.figures.kind === "missing") return peer.figures;
  const theirs = peer.figures.values;
  const values = hone.values.map((value, round) =>
    better === "higher" ? value / theirs[round]! : theirs[round]! / value,
  );
  return { kind: "measured", values };
}

function verdictOf(figure: Figures, { kind, bar, aim }: Target): Verdict {
  if (figure.kind === "missing") return Verdict.open;
  const { median } = summarise(figure.values);
  const reaches = (wanted: number) => (kind === "at least" ? median >= wanted : median <= wanted);
  if (aim !== undefined && reaches(aim)) return Verdict.aim;
  return reaches(bar) ? Verdict.bar : Verdict.missed;
}

const HEADINGS = [
  ["work", "left"],
  ["unit", "left"],
  ["Hone", "right"],
  ["peer", "right"],
  ["ratio", "right"],
  ["bar", "right"],
  ["aim", "right"],
  ["of the product", "right"],
  ["", "left"],
] as const;

/** The table as lines: medians, of ratios too. */
export function formatComparisons(rows: readonly JudgedComparison[]): string[] {
  return formatTable(HEADINGS, rows.map(cellsOf));
}

function cellsOf({ name, unit, hone, peer, figure, target, productShare, verdict }: JudgedComparison) {
  const share = productShare === undefined ? "" : `${Math.round(summarise(productShare).median)} %`;
  const limit = (value: number) => `${target.kind === "at least" ? ">=" : "<="} ${value}`;
  const reason = figure.kind === "missing" ? `: ${figure.reason}` : "";
  return [
    peer === undefined ? name : `${name}, against ${peer.name}`,
    unit,
    medianOf(hone),
    peer === undefined ? "" : medianOf(peer.figures),
    peer === undefined ? "" : medianOf(figure),
    limit(target.bar),
    target.aim === undefined ? "" : limit(target.aim),
    share,
    `${verdict}${reason}`,
  ];
}

function medianOf(figures: Figures): string {
  return figures.kind === "missing" ? "-" : formatNumber(summarise(figures.values).median);
}
