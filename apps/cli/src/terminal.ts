/**
 * Prints lines and, on a terminal, one live line below them that is rewritten in place.
 *
 * If the output is not a terminal (a pipe, a log), live text is left out, and callers print plain lines less often.
 * Colour depends on NO_COLOR, FORCE_COLOR and whether the output is a terminal (`util.styleText`).
 */

import type { Writable } from "node:stream";
import { stripVTControlCharacters, styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

export interface OutputStream extends Writable {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

const CLEAR_LINE = "\r\u001b[K";
/** Some pseudo-terminals have no size: 0 columns. */
const DEFAULT_COLUMNS = 80;

export class Terminal {
  readonly #output: OutputStream;
  #live = "";

  constructor(output: OutputStream = process.stdout) {
    this.#output = output;
  }

  /** Whether the output is a terminal, which shows the live line. */
  get isInteractive(): boolean {
    return this.#output.isTTY === true;
  }

  /** Prints a line; the live line stays below it. */
  line(text = ""): void {
    if (!this.isInteractive) {
      this.#output.write(`${text}\n`);
      return;
    }
    this.#output.write(`${CLEAR_LINE}${text}\n${this.#live}`);
  }

  /** Prints text without a line break; for use while there is no live line. */
  write(text: string): void {
    this.#output.write(text);
  }

  /** Rewrites the live line; an empty text removes it. */
  live(text: string): void {
    if (!this.isInteractive) return;
    this.#live = truncate(text, (this.#output.columns || DEFAULT_COLUMNS) - 1);
    this.#output.write(`${CLEAR_LINE}${this.#live}`);
  }

  style(style: Style, text: string): string {
    return styleText(style, text, { stream: this.#output });
  }
}

/** Cuts text that would wrap, because a wrapped line cannot be rewritten. Text that is cut loses its colours. */
function truncate(text: string, columns: number): string {
  const plain = stripVTControlCharacters(text);
  return plain.length <= columns ? text : `${plain.slice(0, Math.max(0, columns - 1))}…`;
}

/** The lines of a table: columns are two spaces apart and as wide as their longest cell. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, stripVTControlCharacters(cell).length);
    }
  }
  return rows.map((row) =>
    row
      .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - stripVTControlCharacters(cell).length))
      .join("  ")
      .trimEnd(),
  );
}
