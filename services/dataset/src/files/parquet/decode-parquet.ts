/**
 * Decodes a Parquet file to lines of JSON, in a process of its own (decode-parquet-main.ts).
 *
 * Anybody may have made such a file, and two kilobytes of it can expand to gigabytes: a page may claim to decompress to any
 * length, a run of equal values may be of any length, one long text of a dictionary may be used in a million rows.
 *
 * L1: the bytes written are limited in proportion to the size of the file; each line is limited as in every file of rows.
 * L2: the bytes that a page decompresses to are limited, and no codec gives more than the page's header says.
 * L3: the memory that decoding takes in between cannot be computed beforehand, so its process has a limit of memory and time.
 */

import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { asyncBufferFromFile, type Compressors, parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { MAX_LINE_BYTES } from "../read-lines.ts";

/** Rows that are decoded, and in memory, at once. */
const SLICE_ROWS = 10_000;
/** Most writers make pages of one megabyte, but some put a whole row group into one page. */
const MAX_PAGE_BYTES = 512 * 1024 * 1024;
/** Limit of the metadata at the end of the file, which has some hundred bytes for each column of each row group. */
const MAX_METADATA_BYTES = 64 * 1024 * 1024;
/** The shortest line: `{}` and a line feed. */
const MIN_LINE_BYTES = 3;
/** Length from which a text is handed on to be written. */
const PIECE_CHARACTERS = 1024 * 1024;

/** The file exceeds a limit or contradicts itself. */
export class ParquetLimitError extends Error {}

/**
 * Gives the file's rows as texts of many lines, one line for each row.
 * @param maxBytes limit of all lines together.
 * @throws {ParquetLimitError} when a limit is exceeded, and the library's error for a file that is not Parquet.
 */
export async function* linesOfParquet(from: string, maxBytes: number): AsyncGenerator<string> {
  const file = await asyncBufferFromFile(from);
  const end = new DataView(await file.slice(Math.max(0, file.byteLength - 8), file.byteLength));
  const metadataBytes = end.byteLength < 8 ? 0 : end.getUint32(0, true);
  if (metadataBytes > MAX_METADATA_BYTES) throw beyond("its metadata", metadataBytes, MAX_METADATA_BYTES);
  const metadata = await parquetMetadataAsync(file);
  const numRows = metadata.row_groups.reduce((sum, group) => sum + Number(group.num_rows), 0);
  if (numRows * MIN_LINE_BYTES > maxBytes) {
    throw new ParquetLimitError(
      `its metadata claims ${numRows} rows, more than a file of ${file.byteLength} bytes may have`,
    );
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
          throw beyond(`the rows of a file of ${file.byteLength} bytes`, written, maxBytes);
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

/** Turns values that JSON does not have: 64-bit integers into numbers (into text beyond 2^53), times into ISO 8601, bytes into base 64. */
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

/** L2: Node's own decompressors where there are some, as they stop at a given length. */
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
      // Node accepts no limit of 0 bytes, which an empty page would need.
      return length === 0 ? new Uint8Array(0) : decompress!(input, length);
    },
  ]),
);

function beyond(what: string, bytes: number, maxBytes: number): ParquetLimitError {
  return new ParquetLimitError(`${what} would take ${bytes} bytes, and at most ${maxBytes} are allowed`);
}
