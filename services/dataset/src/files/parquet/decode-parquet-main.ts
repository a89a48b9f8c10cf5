/** The process that decodes one Parquet file: `decode-parquet-main.ts FROM TO LIMITS`. It sends its parent a DecodeEnd. */

import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Worker } from "node:worker_threads";
import { describeError } from "@hone/core";
import { linesOfParquet } from "./decode-parquet.ts";
import type { DecodeEnd, DecodeLimits } from "./parquet-rows.ts";

const [from = "", to = "", limits = "{}"] = process.argv.slice(2);
const { maxBytes, maxMemoryBytes } = JSON.parse(limits) as DecodeLimits;

const watch = new Worker(new URL("./memory-watch.ts", import.meta.url), {
  workerData: { maxMemoryBytes, parent: process.ppid },
});
watch.unref();
process.send?.(await decode());
process.disconnect();

async function decode(): Promise<DecodeEnd> {
  try {
    await pipeline(Readable.from(linesOfParquet(from, maxBytes)), createWriteStream(to, { flags: "wx" }));
    return { kind: "done" };
  } catch (error) {
    // The operating system failed, as when the disk is full; the file is not at fault.
    if (error instanceof Error && "syscall" in error && "code" in error) {
      return { kind: "failed", code: String(error.code), message: error.message };
    }
    return { kind: "refused", reason: describeError(error) };
  }
}
