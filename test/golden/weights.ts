/**
 * Compares the weights after each step of two runs with recorded digests.
 *
 * A change that is not meant to change numbers must not change these digests. They depend on the processor, as onnxruntime
 * chooses its kernels by the processor's instruction sets. Each kind of processor has its own record; without a record the
 * test is skipped.
 *
 * After a change that is meant to change numbers, `HONE_TEST_RECORD=1 npm test -- test/golden` writes new records.
 */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";

/** SHA-256 of the weights after each step, version 0 first. */
type Digests = readonly string[];
/** By name of the run, then by processor. */
type Recorded = Record<string, Record<string, Digests>>;

const FILE = path.join(import.meta.dirname, "weights.json");

/** Fails if the digests differ from the record; skips the test on a processor without a record. */
export function compareWithRecord(context: TestContext, name: string, digests: Digests): void {
  const processor = processorName();
  const recorded = JSON.parse(readFileSync(FILE, "utf8")) as Recorded;
  if (process.env.HONE_TEST_RECORD === "1") {
    const changed = { ...recorded, [name]: { ...recorded[name], [processor]: digests } };
    writeFileSync(FILE, `${JSON.stringify(changed, undefined, 2)}\n`);
    return;
  }
  const expected = recorded[name]?.[processor];
  if (expected === undefined) {
    context.skip(`not compared: test/golden/weights.json has no digests for ${processor}`);
    return;
  }
  assert.deepEqual(digests, expected, "the weights after each step are those of the record");
}

/** A name such as "AMD EPYC with avx512f, avx512_vnni"; the model name alone may stand for several generations. */
function processorName(): string {
  const model = cpus()[0]?.model.trim() ?? "an unknown processor";
  return `${model} with ${instructionSets().join(", ")}`;
}

/** The instruction sets by which onnxruntime chooses its kernels. */
function instructionSets(): string[] {
  const known = ["avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd"];
  try {
    const flags = new Set(
      readFileSync("/proc/cpuinfo", "utf8")
        .match(/^(flags|Features)\s*:.*$/m)?.[0]
        .split(/\s+/),
    );
    return known.filter((name) => flags.has(name));
  } catch {
    return ["instruction sets unknown"]; // not Linux
  }
}
