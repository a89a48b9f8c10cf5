/**
 * Turns the rows of a Parquet file into JSON Lines.
 *
 * A run asks for its rows in a shuffled order, and reading a single row of Parquet means decoding thousands. So a file is
 * turned into JSON Lines once, a slice at a time, and its rows are read from there.
 *
 * R1: a file is decoded in a process of its own, with limits of memory, time and bytes written (decode-parquet.ts). A file
 *     that would fill memory or disk is refused, and other requests are not affected.
 */

import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { open, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { SourceError } from "../../errors.ts";
import { parseRow } from "../parse-row.ts";
import { readLines } from "../read-lines.ts";

/** Limits of decoding. */
export interface DecodeLimits {
  /** Most bytes of all lines together. */
  readonly maxBytes: number;
  /** Most memory of the process that decodes. */
  readonly maxMemoryBytes: number;
}

/** How decoding ended; the decoding process sends it to its parent. */
export type DecodeEnd =
  | { readonly kind: "done" }
  /** The file is not Parquet, or exceeds a limit. */
  | { readonly kind: "refused"; readonly reason: string }
  /** The operating system failed, and the file is not at fault. */
  | { readonly kind: "failed"; readonly code: string; readonly message: string };

export interface ParquetOptions {
  /** Most memory of the process that decodes; the default, and the most, is 2 GiB. */
  readonly maxMemoryBytes?: number | undefined;
  /** @default grows with the size of the file */
  readonly deadlineMs?: number | undefined;
}

const MAIN = fileURLToPath(new URL("./decode-parquet-main.ts", import.meta.url));
const MIB = 1024 * 1024;
/** Enough for a row group, which writers make of 128 MiB to 1 GiB, and for the values that are decoded from it. */
const DEFAULT_MEMORY_BYTES = 2_048 * MIB;
/**
 * The limit of the lines grows with the file. A column of equal values, such as one long system prompt in each row, is
 * compressed some hundred times; no honest file is compressed more than a thousand times.
 */
const FREE_BYTES = 256 * MIB;
const BYTES_PER_BYTE = 1_000;
/** More rows than anybody trains on, and few enough for a disk. */
const MAX_BYTES = 256 * 1024 * MIB;
/** Decoding ten megabytes takes less than a second; a busy machine is far slower. */
const FREE_MS = 300_000;
const MS_PER_MIB = 2_000;

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Writes the rows of `from` to `to`, one on each line; `to` appears only when it is complete.
 * @throws {SourceError} when the file is not Parquet or cannot be decoded within the limits.
 */
export async function parquetToJsonl(from: string, to: string, options: ParquetOptions = {}): Promise<void> {
  const temporary = `${to}.${randomUUID()}.tmp`;
  try {
    await decode(from, temporary, options);
    await rename(temporary, to);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/**
 * Gives the rows of a Parquet file as JSON values.
 * @throws {SourceError} when the file is not Parquet or cannot be decoded within the limits.
 */
export async function* parquetRows(from: string): AsyncGenerator<JsonObject> {
  const rows = path.join(tmpdir(), `hone-parquet-${randomUUID()}.jsonl`);
  try {
    await parquetToJsonl(from, rows);
    await using handle = await open(rows);
    for await (const { bytes, line } of readLines(handle, rows, 0, 1)) {
      yield parseRow(bytes, path.basename(from), line).value;
    }
  } finally {
    await rm(rows, { force: true });
  }
}

/** R1 */
async function decode(from: string, to: string, options: ParquetOptions): Promise<void> {
  const { size } = await stat(from);
  const maxMemoryBytes = Math.min(DEFAULT_MEMORY_BYTES, options.maxMemoryBytes ?? DEFAULT_MEMORY_BYTES);
  const { deadlineMs = FREE_MS + Math.ceil(size / MIB) * MS_PER_MIB } = options;
  const limits: DecodeLimits = {
    maxBytes: Math.min(MAX_BYTES, FREE_BYTES + BYTES_PER_BYTE * size),
    maxMemoryBytes,
  };
  const child = fork(MAIN, [from, to, JSON.stringify(limits)], {
    env: {},
    execArgv: [`--max-old-space-size=${Math.ceil(maxMemoryBytes / MIB)}`],
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  let end: DecodeEnd | undefined;
  let isLate = false;
  child.on("message", (message) => {
    end = message as DecodeEnd;
  });
  const timer = setTimeout(() => {
    isLate = true;
    child.kill("SIGKILL");
  }, deadlineMs);
  try {
    await once(child, "close");
  } finally {
    clearTimeout(timer);
  }
  if (end?.kind === "done") return;
  if (end?.kind === "failed") throw Object.assign(new Error(end.message), { code: end.code });
  const mib = Math.round(maxMemoryBytes / MIB);
  const limit = isLate ? `${deadlineMs} ms` : `${mib} MiB of memory`;
  const reason = end?.reason ?? `it takes more than ${limit} to decode`;
  throw new SourceError(
    `${path.basename(from)} cannot be read as Parquet: ${reason}; give a Parquet file with smaller row groups, or JSON Lines`,
    { path: "path", allowed: "a Parquet file" },
  );
}
