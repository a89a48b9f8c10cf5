/**
 * Whether two resolved run files describe the same run, key by key.
 *
 * R1: every key matters unless it is named here as one that does not: a key that is added later matters by itself.
 */

import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";

/** One key whose values differ. */
export interface RunChange {
  /** Path of the key, such as `model.lora.rank`. */
  readonly key: string;
  /** Undefined = it was absent. */
  readonly before: unknown;
  /** Undefined = it is absent. */
  readonly after: unknown;
  /** Whether a run with the one value is another run than one with the other (R1). */
  readonly matters: boolean;
}

/** How often something is written or looked at: what is trained, and what an evaluation says, do not follow from it. */
export const KEYS_THAT_DO_NOT_MATTER: ReadonlySet<string> = new Set([
  "trainer.checkpoint.every",
  "trainer.checkpoint.keep",
  "trainer.stateEvery",
  "trainer.eval.every",
]);

/** Every key whose values differ, in order of their paths. */
export function runChanges(before: unknown, after: unknown): RunChange[] {
  return [...differences(before, after, "")].sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** Names the files of a tokenizer by what is in them: what stands in a run file, and what a trainer keeps in a folder. */
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
