/**
 * Compares two resolved run files key by key, to decide whether they describe the same run.
 *
 * R1: every key matters unless it is listed here as one that does not, so a new key matters by default.
 */

import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";

/** One key whose values differ. */
export interface RunChange {
  /** Path of the key, such as `model.lora.rank`. */
  readonly key: string;
  /** Undefined if it was absent. */
  readonly before: unknown;
  /** Undefined if it is absent. */
  readonly after: unknown;
  /** Whether the change makes it a different run (R1). */
  readonly matters: boolean;
}

/** Keys that say how often something is written or evaluated; neither training nor the result of an evaluation depends on them. */
export const KEYS_THAT_DO_NOT_MATTER: ReadonlySet<string> = new Set([
  "trainer.checkpoint.every",
  "trainer.checkpoint.keep",
  "trainer.stateEvery",
  "trainer.eval.every",
]);

/** All keys whose values differ, sorted by path. */
export function runChanges(before: unknown, after: unknown): RunChange[] {
  return [...differences(before, after, "")].sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** A digest of the contents of a tokenizer's files, by which those in a run file and those in a trainer's folder are compared. */
export function tokenizerDigest(files: Readonly<Record<string, string>>): string {
  const entries = Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash("sha256").update(JSON.stringify(entries)).digest("hex");
}

function* differences(before: unknown, after: unknown, key: string): Generator<RunChange> {
  if (isObject(before) && isObject(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      yield* differences(before[name], after[name], key === "" ? name : `${key}.${name}`);
    }
    return;
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    for (const [index, value] of before.entries())
      yield* differences(value, after[index], `${key}[${index}]`);
    return;
  }
  if (isDeepStrictEqual(before, after)) return;
  yield { key, before, after, matters: !KEYS_THAT_DO_NOT_MATTER.has(key) };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
