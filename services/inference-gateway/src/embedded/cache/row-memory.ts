/**
 * Memory of keys and values that outlives a policy version, so that the next version's rows go where the last one's were.
 *
 * The first write to a page of new memory waits until the system has found and cleared the page, which takes several times as long as
 * the write.
 */

import { free } from "./kv-rows.ts";

/** An array of rows. Those of float32 numbers hold finite numbers only, and none that were anything else. */
export interface KeptRows {
  readonly words: Int32Array;
  readonly isFloat: boolean;
}

export class RowMemory {
  /** By what can be taken. */
  #kept = new Map<string, KeptRows[]>();

  /** @returns an array of that many words, which are finite numbers if they are float32. */
  take(length: number, isFloat: boolean): Int32Array {
    return this.#kept.get(keyOf(length, isFloat))?.pop()?.words ?? new Int32Array(length);
  }

  /** Keeps arrays until the next version takes them, and frees those that this version has not taken. */
  keep(arrays: readonly KeptRows[]): void {
    this.clear();
    // Backwards, so that they are taken in the order in which they were given: each again holds what it held.
    this.#kept = Map.groupBy(arrays.toReversed(), ({ words, isFloat }) => keyOf(words.length, isFloat));
  }

  /** Frees what is kept. */
  clear(): void {
    for (const arrays of this.#kept.values()) for (const { words } of arrays) free(words);
    this.#kept.clear();
  }
}

function keyOf(length: number, isFloat: boolean): string {
  return `${length} ${isFloat}`;
}

/** Memory of a pool of rows and of the slots that are filled from it. Runners of versions that follow each other share it. */
export class SlotMemory {
  readonly pool = new RowMemory();
  readonly decoding = new RowMemory();
  readonly continuing = new RowMemory();
  readonly shared = new RowMemory();

  /** Frees what no runner uses. */
  clear(): void {
    for (const memory of [this.pool, this.decoding, this.continuing, this.shared]) memory.clear();
  }
}
