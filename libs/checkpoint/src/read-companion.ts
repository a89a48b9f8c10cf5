/** Reads the files beside the weights: configurations, indices, tokenizers. They are untrusted and are read whole. */

import { open } from "node:fs/promises";
import { CheckpointError } from "./errors.ts";

/** The largest tokenizers have 35 MB; much larger files would only fill memory. */
const MAX_FILE_BYTES = 128 * 1024 * 1024;

/** @throws CheckpointError if the file cannot be read or exceeds the size limit. */
export async function readCompanion(file: string): Promise<Buffer> {
  try {
    await using handle = await open(file);
    const { size } = await handle.stat();
    if (size > MAX_FILE_BYTES) {
      throw new CheckpointError(file, `the file has ${size} bytes; at most ${MAX_FILE_BYTES} are allowed`);
    }
    return await handle.readFile();
  } catch (cause) {
    if (cause instanceof CheckpointError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CheckpointError(file, `the file cannot be opened (${reason})`, { cause });
  }
}
