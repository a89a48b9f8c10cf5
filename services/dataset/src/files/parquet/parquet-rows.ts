/**
 * Rows of a Parquet file as JSON Lines.
 *
 * A run asks for its rows in a shuffled order, and a single row of Parquet costs the decoding of thousands. So a file is
 * turned once, a slice at a time, and read from there.
 *
 * R1: it is decoded in a process of its own, within bounds of memory, time and what it writes (decode-parquet.ts): a file
 *     that would fill memory or disk is refused, and nobody else's work suffers.
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

/** What decoding may take. */
export interface DecodeLimits {
  /** Of the lines. */
  readonly maxBytes: number;
  /** Of the process that decodes. */
  readonly maxMemoryBytes: number;
}

/** How decoding ended, as its process tells it. */
export type DecodeEnd =
  | { readonly kind: "done" }
  /** The file is none, or beyond a bound. */
  | { readonly kind: "refused"; readonly reason: string }
  /** The disk, and not the file. */
  | { readonly kind: "failed"; readonly code: string; readonly message: string };

export interface ParquetOptions {
  /** Of the process that decodes; at most, and by default, 2 GiB. */
  readonly maxMemoryBytes?: number | undefined;
  /** @default by the size of the file */
  readonly deadlineMs?: number | undefined;
}

const MAIN = fileURLToPath(new URL("./decode-parquet-main.ts", import.meta.url));
const MIB = 1024 * 1024;
/** A row group, which writers make of 128 MiB to 1 GiB, and what is made of its values. */
const DEFAULT_MEMORY_BYTES = 2_048 * MIB;
/**
 * What the lines may have: columns of equal values, such as one long system prompt in each row, shrink by some hundred times;
 * nothing that is meant shrinks by more than a thousand.
 */
const FREE_BYTES = 256 * MIB;
const BYTES_PER_BYTE = 1_000;
/** A disk holds it, and nobody trains on more rows. */
const MAX_BYTES = 256 * 1024 * MIB;
/** Decoding takes a second for ten megabytes and more; a starved machine is slower by far. */
const FREE_MS = 300_000;
const MS_PER_MIB = 2_000;

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Writes the rows of `from` to `to`, one a line; `to` is there only when it is whole.
 * @throws {SourceError} when the file is no Parquet that can be read within the bounds.
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
 * The rows of a Parquet file as JSON values.
 * @throws {SourceError} when the file is no Parquet that can be read within the bounds.
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
  const bound = isLate ? `${deadlineMs} ms` : `${mib} MiB of memory`;
  const reason = end?.reason ?? `it takes more than ${bound} to decode`;
  throw new SourceError(
    `${path.basename(from)} cannot be read as Parquet: ${reason}; give a Parquet file with smaller row groups, or JSON Lines`,
    { path: "path", allowed: "a Parquet file" },
  );
}
