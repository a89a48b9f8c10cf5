/**
 * Row indices on disk, so that a restart and other replicas need not read a large file again.
 *
 * I1: an index file says which version of the rows and which filter it was made for, and is used for no other.
 * I2: it is written to a temporary file and renamed, so a reader never sees a part of it.
 * I3: it can always be made again. An index file that is broken or cannot be written costs time and nothing else.
 */

import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { RowIndex } from "./row-index.ts";

const MAGIC = "hone-row-index-1";
/** Bytes of a block: three 64-bit floats and one 32-bit integer. */
const BLOCK_BYTES = 28;
const MAX_HEADER_BYTES = 65_536;

const headerSchema = z.object({
  magic: z.literal(MAGIC),
  key: z.string(),
  size: z.int().min(0),
  dropped: z.int().min(0),
  blocks: z.int().min(0),
});

/** @param key names the version of the rows and the filter (I1). @returns undefined where there is no usable index. */
export async function loadIndex(file: string, key: string): Promise<RowIndex | undefined> {
  let bytes: Buffer;
  try {
    bytes = await readFile(file);
  } catch {
    return undefined; // I3
  }
  const end = bytes.subarray(0, MAX_HEADER_BYTES).indexOf(0x0a);
  const header = headerSchema.safeParse(end < 0 ? undefined : jsonOf(bytes.toString("utf8", 0, end)));
  if (!header.success || header.data.key !== key) return undefined;
  const { size, dropped, blocks } = header.data;
  const begin = end + 1;
  if (bytes.length !== begin + blocks * BLOCK_BYTES) return undefined;
  // Copied, as typed arrays require an aligned start.
  const body = new Uint8Array(bytes.subarray(begin)).buffer;
  const doubles = (part: number) => new Float64Array(body, part * blocks * 8, blocks);
  return new RowIndex(size, dropped, {
    offsets: doubles(0),
    lines: doubles(1),
    before: doubles(2),
    kept: new Uint32Array(body, blocks * 24, blocks),
  });
}

/** @throws the error of the disk, which the caller may ignore (I3). */
export async function saveIndex(file: string, key: string, index: RowIndex): Promise<void> {
  const { offsets, lines, before, kept } = index.parts;
  const header = { magic: MAGIC, key, size: index.size, dropped: index.dropped, blocks: offsets.length };
  const parts = [offsets, lines, before, kept].map(
    ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength),
  );
  await mkdir(path.dirname(file), { recursive: true });
  const temporary = `${file}.${randomUUID()}.tmp`;
  try {
    await writeFile(temporary, Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), ...parts]));
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
