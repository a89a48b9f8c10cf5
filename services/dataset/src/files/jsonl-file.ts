/**
 * Random access to the rows of a JSON Lines file.
 *
 * One pass over the file notes where every STRIDE-th row begins (byte offset and line number), so the index of a file
 * of ten million rows takes 5 MB. A row is found by reading from the nearest note before it. Empty lines are no rows.
 * An index belongs to one version of the file (device, inode, size, time of change): a file that changes is indexed anew.
 */

import { type FileHandle, open } from "node:fs/promises";
import path from "node:path";
import { parseJson } from "@hone/core";
import { SourceError } from "../errors.ts";

/** Rows between two notes: with 16 bytes a note, half a byte a row, for at most 31 rows read over. */
const STRIDE = 32;
const CHUNK_BYTES = 256 * 1024;
/** A longer line is more likely the wrong file than a row: a million tokens of context have half of it. */
export const MAX_LINE_BYTES = 8 * 1024 * 1024;
/** Rows of one batch together: they are in memory at once, and travel as one object. */
export const MAX_BATCH_BYTES = 128 * 1024 * 1024;

/** One row with where it stands. */
export interface JsonlRow {
  /** Line in the file, from 1. */
  readonly line: number;
  /** The line's text, known to be a JSON object. */
  readonly json: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** A file with its index. */
export class JsonlFile {
  readonly name: string;
  /** Number of rows. */
  readonly size: number;
  readonly #path: string;
  readonly #offsets: Float64Array;
  readonly #lines: Float64Array;

  private constructor(file: string, size: number, offsets: Float64Array, lines: Float64Array) {
    this.name = path.basename(file);
    this.size = size;
    this.#path = file;
    this.#offsets = offsets;
    this.#lines = lines;
  }

  /** Reads the file once. @throws {SourceError} when a line is longer than MAX_LINE_BYTES. */
  static async index(file: string): Promise<JsonlFile> {
    const offsets: number[] = [];
    const lines: number[] = [];
    let size = 0;
    const handle = await open(file);
    try {
      for await (const row of readLines(handle, file, 0, 1)) {
        if (size % STRIDE === 0) {
          offsets.push(row.offset);
          lines.push(row.line);
        }
        size++;
      }
    } finally {
      await handle.close();
    }
    return new JsonlFile(file, size, Float64Array.from(offsets), Float64Array.from(lines));
  }

  /** Every row from the first on. @throws {SourceError} as {@link read} does. */
  async *rows(): AsyncGenerator<JsonlRow> {
    const handle = await open(this.#path);
    try {
      for await (const { bytes, line } of readLines(handle, this.#path, 0, 1))
        yield parseRow(bytes, this.name, line);
    } finally {
      await handle.close();
    }
  }

  /**
   * The rows at the given indices (0..size-1), in the order asked for.
   * @throws {SourceError} when a row is no JSON object, with the file and the line, or the rows are too large together.
   */
  async read(indices: readonly number[]): Promise<JsonlRow[]> {
    const blocks = Map.groupBy(new Set(indices), (index) => Math.floor(index / STRIDE));
    const rows = new Map<number, JsonlRow>();
    let totalBytes = 0;
    const handle = await open(this.#path);
    try {
      for (const [block, wanted] of blocks) {
        const offset = this.#offsets[block];
        const line = this.#lines[block];
        if (offset === undefined || line === undefined) {
          throw new RangeError(
            `Cannot read a row as rows lie in 0..${this.size - 1}: current value is ${wanted}`,
          );
        }
        let remaining = wanted.length;
        let index = block * STRIDE;
        for await (const found of readLines(handle, this.#path, offset, line)) {
          if (wanted.includes(index)) {
            totalBytes += found.bytes.length;
            if (totalBytes > MAX_BATCH_BYTES) throw tooLarge(this.name, indices.length);
            rows.set(index, parseRow(found.bytes, this.name, found.line));
            remaining--;
          }
          index++;
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
          `Cannot read row ${index} as ${this.name} became shorter while it was read: current value is ${this.size} rows`,
          { path: "path", allowed: "a file that does not change" },
        );
      }
      return row;
    });
  }
}

function tooLarge(name: string, rowCount: number): SourceError {
  return new SourceError(
    `Cannot read the rows as they may have ${MAX_BATCH_BYTES} bytes together: current value is more, in ${rowCount} rows of ${name}`,
    { path: "path", allowed: "smaller rows, or fewer at once" },
  );
}

interface FoundLine {
  readonly offset: number;
  readonly line: number;
  readonly bytes: Buffer;
}

const NEWLINE = 0x0a;

/** The non-empty lines from `offset` on, which is the begin of line number `line`. */
async function* readLines(
  handle: FileHandle,
  file: string,
  offset: number,
  line: number,
): AsyncGenerator<FoundLine> {
  let pending = Buffer.alloc(0);
  let pendingAt = offset;
  let readAt = offset;
  for (;;) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, readAt);
    readAt += bytesRead;
    pending =
      pending.length === 0
        ? buffer.subarray(0, bytesRead)
        : Buffer.concat([pending, buffer.subarray(0, bytesRead)]);
    let begin = 0;
    for (let end = pending.indexOf(NEWLINE); end !== -1; end = pending.indexOf(NEWLINE, begin)) {
      const bytes = pending.subarray(begin, end);
      if (!isBlank(bytes)) yield { offset: pendingAt + begin, line, bytes };
      line++;
      begin = end + 1;
    }
    pending = pending.subarray(begin);
    pendingAt += begin;
    if (bytesRead === 0) {
      if (!isBlank(pending)) yield { offset: pendingAt, line, bytes: pending };
      return;
    }
    if (pending.length > MAX_LINE_BYTES) {
      throw new SourceError(
        `Cannot index ${path.basename(file)} as a line may have ${MAX_LINE_BYTES} bytes: current value is more on line ${line}`,
        { path: "path", allowed: "a JSON Lines file" },
      );
    }
  }
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d || byte === 0x0a);
}

function parseRow(bytes: Buffer, name: string, line: number): JsonlRow {
  // A byte order mark may stand before the first row.
  const json = bytes
    .toString("utf8")
    .replace(/^\uFEFF/, "")
    .trim();
  const refuse = (found: string, cause?: unknown) =>
    new SourceError(
      `Cannot read the dataset as each line must be a JSON object: current value at ${name}:${line} is ${found}`,
      { path: "path", allowed: "one JSON object a line" },
      { cause },
    );
  let value: unknown;
  try {
    value = parseJson(json);
  } catch (error) {
    throw refuse(excerpt(json), error);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw refuse(excerpt(json));
  return { line, json, value: value as Record<string, unknown> };
}

/** Enough of a broken line to recognise it. */
function excerpt(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
