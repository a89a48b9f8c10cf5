/** The report of a bench: rows in sections, printed as a table and written as JSON. */

import type { SittingReport } from "./sitting.ts";
import { summarise } from "./summarise.ts";

/** One figure, with the values of its rounds or the reason why there are none. */
export type Row = MeasuredRow | MissingRow;

interface RowHead {
  readonly name: string;
  readonly unit: string;
  /** A short explanation of the figure. */
  readonly meaning: string;
}

export interface MeasuredRow extends RowHead {
  readonly kind: "measured";
  /** One value per round, in order. */
  readonly values: readonly number[];
  readonly better: "higher" | "lower";
}

export interface MissingRow extends RowHead {
  readonly kind: "missing";
  readonly reason: string;
}

export interface Section {
  /** The name for `--only`. */
  readonly name: string;
  readonly title: string;
  readonly rows: readonly Row[];
}

/** The report of one sitting. */
export interface Report extends SittingReport {
  readonly isQuick: boolean;
  readonly sections: readonly Section[];
}

/** A row with measured values. @param better whether higher or lower values are better */
export function measured(
  name: string,
  unit: string,
  values: readonly number[],
  meaning: string,
  better: MeasuredRow["better"] = "higher",
): MeasuredRow {
  return { kind: "measured", name, unit, values, meaning, better };
}

/** A row with the reason why there is no figure. */
export function missing(name: string, unit: string, reason: string, meaning: string): MissingRow {
  return { kind: "missing", name, unit, reason, meaning };
}

const HEADINGS = [
  ["", "left"],
  ["median", "right"],
  ["best", "right"],
  ["spread", "right"],
  ["unit", "left"],
  ["what it says", "left"],
] as const;

/** Formats a section as a table. */
export function formatSection(section: Section): string[] {
  return [section.title, ...formatTable(HEADINGS, section.rows.map(cellsOf))];
}

/** Formats columns that are as wide as their widest cell. @param headings the heading and alignment of each column */
export function formatTable(
  headings: readonly (readonly [heading: string, side: "left" | "right"])[],
  rows: readonly (readonly string[])[],
): string[] {
  const widths = headings.map(([heading], column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) =>
        headings[column]![1] === "right" ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      .join("  ")
      .trimEnd();
  return [line(headings.map(([heading]) => heading)), ...rows.map(line)];
}

function cellsOf(row: Row): string[] {
  if (row.kind === "missing") return [row.name, "-", "-", "-", row.unit, `${row.reason}; ${row.meaning}`];
  const { median, lowest, highest, spread } = summarise(row.values);
  const best = row.better === "higher" ? highest : lowest;
  const isOne = row.values.length === 1;
  return [
    row.name,
    formatNumber(median),
    isOne ? "" : formatNumber(best),
    isOne ? "" : `${Math.round(spread * 100)} %`,
    row.unit,
    row.meaning,
  ];
}

/** Three significant digits, with thousands grouped. */
export function formatNumber(value: number): string {
  const magnitude = Math.abs(value);
  const digits = magnitude >= 100 || magnitude === 0 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
