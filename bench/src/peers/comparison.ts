/** The comparisons of `npm run bench:peers`: figures of Hone and of a peer, or of Hone and a limit. */

import { formatNumber, formatTable } from "../report/report.ts";
import { summarise } from "../report/summarise.ts";

/** One value per round, or the reason why there are none. */
export type Figures =
  | { readonly kind: "measured"; readonly values: readonly number[] }
  | { readonly kind: "missing"; readonly reason: string };

/** The bar that must be reached, and the aim. They are lower bounds of ratios, and upper bounds of growth and memory. */
export interface Target {
  readonly kind: "at least" | "at most";
  readonly bar: number;
  readonly aim?: number;
}

/** The figures of a piece of work by Hone and by a peer. */
export interface Comparison {
  /** Name of the work. */
  readonly name: string;
  readonly unit: string;
  /** Whether a higher or a lower figure is better; a ratio above 1 means that Hone's is better. */
  readonly better: "higher" | "lower";
  readonly hone: Figures;
  /** The peer's figures; absent if Hone's figure is compared with the target itself. */
  readonly peer?: { readonly name: string; readonly figures: Figures };
  readonly target: Target;
  /** Percent of the machine's matrix-product rate in each round; absent if the figure is not a throughput. */
  readonly productShare?: readonly number[];
}

/** The verdict on a row. */
export const Verdict = {
  aim: "aim reached",
  /** The bar is reached, and there is no aim or it is reached too. */
  bar: "bar reached",
  missed: "BAR MISSED",
  open: "not measured",
} as const;
export type Verdict = (typeof Verdict)[keyof typeof Verdict];

export interface JudgedComparison extends Comparison {
  /** The values that are compared with the target, by round: ratios if there is a peer, otherwise Hone's figures. */
  readonly figure: Figures;
  readonly verdict: Verdict;
}

/** Ratios of figures of the same round. */
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

/** Formats the table, with medians of figures and of ratios. */
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
