/** Reads the lines of a file in chunks. */

import type { FileHandle } from "node:fs/promises";
import path from "node:path";
import { SourceError } from "../errors.ts";

const CHUNK_BYTES = 256 * 1024;
/** A longer line is more likely a wrong file than a row: a context of a million tokens has half as many bytes. */
export const MAX_LINE_BYTES = 8 * 1024 * 1024;

/** A line that is not blank. */
export interface FoundLine {
  /** Where it begins, in bytes. */
  readonly offset: number;
  /** Its number, from 1. */
  readonly line: number;
  readonly bytes: Buffer;
}

const NEWLINE = 0x0a;

/**
 * Gives the lines that are not blank, from `offset` on, where line number `line` begins.
 * @throws {SourceError} when a line is longer than MAX_LINE_BYTES.
 */
export async function* readLines(
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
        `line ${line} of ${path.basename(file)} is longer than ${MAX_LINE_BYTES} bytes; give a JSON Lines file with one row on each line`,
        { path: "path", allowed: "a JSON Lines file" },
      );
    }
  }
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d || byte === 0x0a);
}
