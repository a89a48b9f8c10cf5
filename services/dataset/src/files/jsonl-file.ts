/**
 * Random access to the rows of a JSON Lines file.
 *
 * One pass over the file makes its index (row-index.ts). For a million rows the pass takes seconds and the index 0.9 MB.
 * Empty lines do not count as rows. An index belongs to one version of the file (device, inode, size, time of change).
 */

import { open } from "node:fs/promises";
import path from "node:path";
import type { RowFilter } from "@hone/config";
import { SourceError } from "../errors.ts";
import { type JsonlRow, parseRow } from "./parse-row.ts";
import { readLines } from "./read-lines.ts";
import { makeRowFilter } from "./row-filter.ts";
import { type RowIndex, RowIndexBuilder } from "./row-index.ts";

/** Most bytes of the rows of one batch, which are in memory at once and are sent as one object. */
export const MAX_BATCH_BYTES = 128 * 1024 * 1024;

/** Reads a file once and makes its index. @throws {SourceError} when a line is too long or, with a filter, not a JSON object. */
export async function indexRows(
  file: string,
  name: string,
  filter: RowFilter | undefined,
): Promise<RowIndex> {
  const builder = new RowIndexBuilder();
  const keepRow = filter === undefined ? undefined : makeRowFilter(filter);
  const handle = await open(file);
  try {
    for await (const row of readLines(handle, file, 0, 1)) {
      builder.add(row, keepRow === undefined || keepRow(parseRow(row.bytes, name, row.line).value));
    }
  } finally {
    await handle.close();
  }
  return builder.build();
}

/** A file with its index. */
export class JsonlFile {
  /** The name that errors and task ids show. */
  readonly name: string;
  readonly #path: string;
  readonly #index: RowIndex;

  /** @param name name of the file in the run file, where `file` holds rows that were made from it. */
  constructor(file: string, index: RowIndex, name = path.basename(file)) {
    this.name = name;
    this.#path = file;
    this.#index = index;
  }

  /** Number of rows. */
  get size(): number {
    return this.#index.size;
  }

  /** Number of rows that the filter left out. */
  get dropped(): number {
    return this.#index.dropped;
  }

  /** All rows, in the file's order. @throws {SourceError} as {@link read} does. */
  async *rows(): AsyncGenerator<JsonlRow> {
    const handle = await open(this.#path);
    let row = 0;
    try {
      for await (const { bytes, line } of readLines(handle, this.#path, 0, 1)) {
        if (this.#index.isKept(row)) yield parseRow(bytes, this.name, line);
        row++;
      }
    } finally {
      await handle.close();
    }
  }

  /**
   * The rows at the given indices (0..size-1), in the order asked for.
   * @throws {SourceError} when a row is not a JSON object (the message names file and line), or the rows are too large together.
   */
  async read(indices: readonly number[]): Promise<JsonlRow[]> {
    const blocks = Map.groupBy(new Set(indices), (index) => this.#index.blockOf(index));
    const rows = new Map<number, JsonlRow>();
    let totalBytes = 0;
    const handle = await open(this.#path);
    try {
      for (const wanted of blocks.values()) {
        const places = new Map(wanted.map((element) => [this.#index.placeOf(element).skip, element]));
        const { offset, line } = this.#index.placeOf(wanted[0]!);
        let remaining = wanted.length;
        let row = 0;
        for await (const found of readLines(handle, this.#path, offset, line)) {
          const element = places.get(row);
          if (element !== undefined) {
            totalBytes += found.bytes.length;
            if (totalBytes > MAX_BATCH_BYTES) throw tooLarge(this.name, indices.length);
            rows.set(element, parseRow(found.bytes, this.name, found.line));
            remaining--;
          }
          row++;
          if (remaining === 0) break;
        }
      }
    } finally {
      await handle.close();
    }
    return indices.map((index) => {
      const row = rows.get(index);
      if (row === undefined) {
        throw new SourceError(
          `row ${index} of ${this.name} is missing: the file had ${this.size} rows and became shorter; start again with a file that does not change`,
          { path: "path", allowed: "a file that does not change" },
        );
      }
      return row;
    });
  }
}

function tooLarge(name: string, rowCount: number): SourceError {
  return new SourceError(
    `${rowCount} rows of ${name} have more than ${MAX_BATCH_BYTES} bytes together, which is the limit of a batch; use smaller rows or ask for fewer at once`,
    { path: "path", allowed: "smaller rows, or fewer at once" },
  );
}
