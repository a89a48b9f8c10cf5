/**
 * Memory of keys and values that outlives a policy version, so that the next version's rows go where the last one's were.
 *
 * The first write to a page of new memory waits until the system has found and cleared the page, which takes several times as long as
 * the write.
 */

import { free } from "./kv-rows.ts";

export class RowMemory {
  /** By their length. */
  #kept = new Map<number, Float32Array[]>();

  /** @returns an array of that many values, which are finite. */
  take(length: number): Float32Array {
    return this.#kept.get(length)?.pop() ?? new Float32Array(length);
  }

  /** Keeps arrays whose values are finite until the next version takes them, and frees those that this version has not taken. */
  keep(arrays: readonly Float32Array[]): void {
    this.clear();
    // Backwards, so that they are taken in the order in which they were given: each again holds what it held.
    this.#kept = Map.groupBy(arrays.toReversed(), ({ length }) => length);
  }

  /** Frees what is kept. */
  clear(): void {
    for (const arrays of this.#kept.values()) for (const array of arrays) free(array);
    this.#kept.clear();
  }
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
