/**
 * The lines that a Parquet file becomes, made in a process of its own (decode-parquet-main.ts).
 *
 * Such a file comes from anybody, and two kilobytes of it can stand for gigabytes: a page may say that it decompresses to any
 * length, a run of equal values may have any number, a dictionary's one long text may stand in each of a million rows.
 *
 * L1: what is written has a bound, by the size of the file; so has each line, as in every file of rows.
 * L2: what a page decompresses to has a bound, and no codec gives more than the page's header says.
 * L3: what decoding takes in between cannot be told beforehand: its process has a bound of memory and of time.
 */

import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { asyncBufferFromFile, type Compressors, parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { MAX_LINE_BYTES } from "../read-lines.ts";

/** Rows decoded at once: they are all in memory. */
const SLICE_ROWS = 10_000;
/** Writers make pages of one megabyte; those of one row group in one page exist. */
const MAX_PAGE_BYTES = 512 * 1024 * 1024;
/** Of the metadata at the end: some hundred bytes for each column of each row group. */
const MAX_METADATA_BYTES = 64 * 1024 * 1024;
/** `{}` and the end of the line. */
const MIN_LINE_BYTES = 3;
/** Written at once. */
const PIECE_CHARACTERS = 1024 * 1024;

/** The file is not what it says, or too much. */
export class ParquetLimitError extends Error {}

/**
 * Texts of many lines each, a row a line.
 * @param maxBytes of all of them.
 * @throws {ParquetLimitError} beyond a bound, and what the library throws for a file that is no Parquet.
 */
export async function* linesOfParquet(from: string, maxBytes: number): AsyncGenerator<string> {
  const file = await asyncBufferFromFile(from);
  const end = new DataView(await file.slice(Math.max(0, file.byteLength - 8), file.byteLength));
  const metadataBytes = end.byteLength < 8 ? 0 : end.getUint32(0, true);
  if (metadataBytes > MAX_METADATA_BYTES) throw beyond("metadata", metadataBytes, MAX_METADATA_BYTES);
  const metadata = await parquetMetadataAsync(file);
  const numRows = metadata.row_groups.reduce((sum, group) => sum + Number(group.num_rows), 0);
  if (numRows * MIN_LINE_BYTES > maxBytes) {
    throw new ParquetLimitError(`${numRows} rows in ${file.byteLength} bytes, more than can be meant`);
  }
  let written = 0;
  let groupStart = 0;
  for (const { num_rows: rowsOfGroup } of metadata.row_groups) {
    const groupEnd = groupStart + Number(rowsOfGroup);
    for (let rowStart = groupStart; rowStart < groupEnd; rowStart += SLICE_ROWS) {
      const rowEnd = Math.min(groupEnd, rowStart + SLICE_ROWS);
      const options = { file, metadata, compressors: BOUNDED, rowStart, rowEnd, useOffsetIndex: true };
      const rows = await parquetReadObjects({ ...options, rowFormat: "object" });
      for (const piece of piecesOf(rows)) {
        written += Buffer.byteLength(piece);
        // L1
        if (written > maxBytes)
          throw beyond(`rows for a file of ${file.byteLength} bytes`, written, maxBytes);
        yield piece;
      }
    }
    groupStart = groupEnd;
  }
}

function* piecesOf(rows: readonly unknown[]): Generator<string> {
  let piece = "";
  for (const row of rows) {
    const line = JSON.stringify(jsonValue(row));
    if (line.length > MAX_LINE_BYTES) throw beyond("a row", line.length, MAX_LINE_BYTES);
    piece += `${line}\n`;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = "";
  }
  if (piece !== "") yield piece;
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

/** L2: Node's own where it has them, as they stop at a length. */
const BOUNDED: Compressors = Object.fromEntries(
  Object.entries({
    ...compressors,
    GZIP: (input: Uint8Array, maxOutputLength: number) => gunzipSync(input, { maxOutputLength }),
    BROTLI: (input: Uint8Array, maxOutputLength: number) => brotliDecompressSync(input, { maxOutputLength }),
    ZSTD: (input: Uint8Array, maxOutputLength: number) => zstdDecompressSync(input, { maxOutputLength }),
  } as Compressors).map(([codec, decompress]) => [
    codec,
    (input: Uint8Array, length: number) => {
      if (!(length >= 0 && length <= MAX_PAGE_BYTES)) throw beyond("a page", length, MAX_PAGE_BYTES);
      // An empty page has no bound that Node takes.
      return length === 0 ? new Uint8Array(0) : decompress!(input, length);
    },
  ]),
);

function beyond(what: string, bytes: number, maxBytes: number): ParquetLimitError {
  return new ParquetLimitError(`${bytes} bytes of ${what}, where at most ${maxBytes} are taken`);
}
