/** What the bench found: rows in sections, as a table for people and as JSON for programs. */

import { summarise } from "./summarise.ts";

/** One figure, measured in several rounds or not at all. */
export type Row = MeasuredRow | MissingRow;

interface RowHead {
  readonly name: string;
  readonly unit: string;
  /** What the figure says, in a few words. */
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
  /** What `--only` takes. */
  readonly name: string;
  readonly title: string;
  readonly rows: readonly Row[];
}

/** The whole of one sitting. */
export interface Report {
  readonly machine: string;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly durationSeconds: number;
  /** Why the figures may be wrong: somebody else used the machine. Absent when it was quiet. */
  readonly busy?: string;
  readonly isQuick: boolean;
  readonly sections: readonly Section[];
}

/** A row whose figures were measured. @param better which end of the rounds is the best one */
export function measured(
  name: string,
  unit: string,
  values: readonly number[],
  meaning: string,
  better: MeasuredRow["better"] = "higher",
): MeasuredRow {
  return { kind: "measured", name, unit, values, meaning, better };
}

/** A row that says why there is no figure. */
export function missing(name: string, unit: string, reason: string, meaning: string): MissingRow {
  return { kind: "missing", name, unit, reason, meaning };
}

const HEADINGS = ["", "median", "best", "spread", "unit", "what it says"] as const;

/** The table as lines. */
export function formatSection(section: Section): string[] {
  const cells = section.rows.map(cellsOf);
  const widths = HEADINGS.map((heading, column) =>
    Math.max(heading.length, ...cells.map((row) => row[column]?.length ?? 0)),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) =>
        column >= 1 && column <= 3 ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      .join("  ")
      .trimEnd();
  return [section.title, line(HEADINGS), ...cells.map(line)];
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

/** Three digits that count, thousands grouped. */
export function formatNumber(value: number): string {
  const magnitude = Math.abs(value);
  const digits = magnitude >= 100 || magnitude === 0 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
