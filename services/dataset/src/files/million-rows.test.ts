/** A file of a million rows is ready in seconds, and takes hardly more memory than a small one. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdir, stat } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import type { RowsCost } from "./testing/million-rows.ts";

const FEW = 1_000;
const MANY = 1_000_000;
const CHUNK_ROWS = 10_000;
/** Allowed in addition to what the program takes for a few rows: buffers, and the index of less than a byte a row. */
const MAX_MORE_BYTES = 100 * 2 ** 20;
/** Several times what is measured, to allow for busy machines; CPU time, so that other programs do not count. */
const MAX_FIRST_CPU_MS = 10_000;
const MAX_LATER_CPU_MS = 2_000;

/** The lines of `count` rows, many in each text. */
function* linesOf(count: number): Generator<string> {
  for (let from = 0; from < count; from += CHUNK_ROWS) {
    const rows = Array.from(
      { length: Math.min(CHUNK_ROWS, count - from) },
      (_, index) =>
        `{"data_source":"sums","prompt":"What is ${from + index} and ${from + index}, and is it even?","reward_model":{"style":"rule","ground_truth":"${2 * (from + index)}"}}\n`,
    );
    yield rows.join("");
  }
}

describe("a file of a million rows", { timeout: 120_000 }, () => {
  let folder: TemporaryFolder;
  let root: string;
  before(async () => {
    folder = await temporaryFolder("million-rows");
    root = path.join(folder.path, "files");
    await mkdir(root);
    for (const [name, count] of [
      ["few.jsonl", FEW],
      ["many.jsonl", MANY],
    ] as const) {
      await pipeline(Readable.from(linesOf(count)), createWriteStream(path.join(root, name)));
    }
  });
  after(() => folder[Symbol.asyncDispose]());

  async function costOf(name: string): Promise<RowsCost> {
    const program = path.join(import.meta.dirname, "testing", "million-rows.ts");
    const args = [program, root, path.join(folder.path, "cache"), name];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    return JSON.parse(stdout) as RowsCost;
  }

  test("is ready in seconds, takes hardly more memory than one of a thousand rows, and is ready at once the next time", async () => {
    const few = await costOf("few.jsonl");
    const first = await costOf("many.jsonl");
    const later = await costOf("many.jsonl");
    assert.deepEqual([few.size, first.size, later.size], [FEW, MANY, MANY]);
    assert.deepEqual(first.taken, later.taken);
    assert.equal(new Set(first.taken).size, 256);
    const { size: bytes } = await stat(path.join(root, "many.jsonl"));
    assert.ok(bytes > MAX_MORE_BYTES, `${bytes} bytes in the file`);
    for (const cost of [first, later]) {
      const more = cost.peakBytes - few.peakBytes;
      assert.ok(more < MAX_MORE_BYTES, `${more} bytes more than with ${FEW} rows`);
    }
    assert.ok(first.cpuMs < MAX_FIRST_CPU_MS, `${first.cpuMs} ms of CPU`);
    assert.ok(later.cpuMs < MAX_LATER_CPU_MS, `${later.cpuMs} ms of CPU`);
  });
});
