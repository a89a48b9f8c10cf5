/**
 * Rows of a Parquet file as JSON Lines.
 *
 * A run asks for its rows in a shuffled order, and a single row of Parquet costs the decoding of thousands. So a file is
 * turned once, a slice at a time, and read from there.
 */

import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { describeError } from "@hone/core";
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { SourceError } from "../errors.ts";

/** Rows decoded at once: they are all in memory. */
const SLICE_ROWS = 10_000;

/**
 * Writes the rows of `from` to `to`, one a line; `to` is there only when it is whole.
 * @throws {SourceError} when the file is no Parquet that can be read.
 */
export async function parquetToJsonl(from: string, to: string): Promise<void> {
  const temporary = `${to}.${randomUUID()}.tmp`;
  try {
    await pipeline(Readable.from(linesOf(from)), createWriteStream(temporary));
    await rename(temporary, to);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Texts of many lines each. */
async function* linesOf(from: string): AsyncGenerator<string> {
  for await (const rows of parquetRows(from)) {
    yield rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  }
}

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * The rows of a Parquet file as JSON values, some thousands at a time.
 * @throws {SourceError} when the file is no Parquet that can be read.
 */
export async function* parquetRows(from: string): AsyncGenerator<JsonObject[]> {
  const refuse = (cause: unknown) =>
    new SourceError(
      `Cannot read the dataset as ${path.basename(from)} must be Parquet: current value is a file with ${describeError(cause)}`,
      { path: "path", allowed: "a Parquet file" },
      { cause },
    );
  const file = await asyncBufferFromFile(from);
  const metadata = await parquetMetadataAsync(file).catch((cause: unknown) => {
    throw refuse(cause);
  });
  let groupStart = 0;
  for (const { num_rows: numRows } of metadata.row_groups) {
    const groupEnd = groupStart + Number(numRows);
    for (let rowStart = groupStart; rowStart < groupEnd; rowStart += SLICE_ROWS) {
      const rowEnd = Math.min(groupEnd, rowStart + SLICE_ROWS);
      const options = { file, metadata, compressors, rowStart, rowEnd, useOffsetIndex: true };
      const rows = await parquetReadObjects({ ...options, rowFormat: "object" }).catch((cause: unknown) => {
        throw refuse(cause);
      });
      yield rows.map((row) => jsonValue(row) as JsonObject);
    }
    groupStart = groupEnd;
  }
}

/** What JSON has no word for: 64-bit integers as numbers (as text beyond 2^53), times as ISO 8601, bytes in base 64. */
function jsonValue(value: unknown): unknown {
  if (typeof value === "bigint") {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : String(value);
  }
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (Array.isArray(value)) return value.map(jsonValue);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, jsonValue(each)]));
}
