/**
 * Keys and values of all sequences of one policy version of a large model. Runs read them from slots (context-slots.ts),
 * which are filled from here.
 *
 * A token has a row [G*D] in each of 2*layers parts, the keys of layer 0, 1, ..., then the values (G key/value heads, D
 * head size), as its run returns them. They are in pages [parts, A, G*D] of A = PAGE_ROWS tokens, and pages are in blocks, which
 * are allocated when they are first written to, so memory grows with the tokens.
 */

import { type ModelSpec, PAGE_ROWS } from "@hone/nn";
import { contextBytesPerToken, type HeadRows, isAllFinite, spreadRows } from "./kv-rows.ts";
import type { RowMemory } from "./row-memory.ts";

/** Large enough to get large pages of memory. */
const BLOCK_BYTES = 32 * 2 ** 20;

/** Rows of consecutive positions within a page. */
export interface StoredRows {
  /** A whole block. */
  readonly rows: Float32Array;
  /** Position of the first row of the first part. */
  readonly first: number;
  /** Distance from there to the first row of the next part, and so on. */
  readonly apart: number;
}

export class RowPool {
  /** In pages. */
  readonly capacity: number;
  /** Values in a row. */
  readonly #width: number;
  readonly #parts: number;
  readonly #blockPages: number;
  readonly #blocks = new Map<number, Float32Array>();
  readonly #memory: RowMemory;

  constructor(spec: ModelSpec, capacity: number, memory: RowMemory) {
    this.#memory = memory;
    this.capacity = capacity;
    this.#width = spec.numKeyValueHeads * spec.headDim;
    this.#parts = 2 * spec.numLayers;
    this.#blockPages = Math.max(1, Math.floor(BLOCK_BYTES / (PAGE_ROWS * contextBytesPerToken(spec))));
  }

  /**
   * Writes rows of consecutive positions in one page; all as zeros where one is not finite.
   * @param fresh of each part [N, G*D]
   * @param token which of the N is the first one.
   * @param also where the rows, or the zeros, go as well.
   * @returns whether they were finite.
   */
  write(
    page: number,
    position: number,
    fresh: readonly Float32Array[],
    token: number,
    count: number,
    also?: HeadRows,
  ): boolean {
    const { rows, first, apart } = this.at(page, position);
    const [begin, end] = [token * this.#width, (token + count) * this.#width];
    let isSound = true;
    for (let part = 0, to = first; part < this.#parts; part++, to += apart) {
      const source = fresh[part]!;
      rows.set(source.subarray(begin, end), to);
      const isSoundPart =
        also === undefined
          ? isAllFinite(source, begin, end)
          : spreadRows(source, begin, this.#width, count, also, part);
      isSound &&= isSoundPart;
    }
    if (!isSound) this.#clear(rows, first, apart, count, also);
    return isSound;
  }

  /** Writes zeros where {@link write} has written. */
  #clear(rows: Float32Array, first: number, apart: number, count: number, also: HeadRows | undefined): void {
    const size = count * this.#width;
    for (let part = 0, to = first; part < this.#parts; part++, to += apart) {
      rows.fill(0, to, to + size);
      if (also === undefined) continue;
      const { headDim, headSize } = also;
      const slot = also.parts[part]!;
      for (let head = 0, at = also.first; head < this.#width; head += headDim, at += headSize)
        slot.fill(0, at, at + count * headDim);
    }
  }

  /** The rows of a page from a position's on. */
  at(page: number, position: number): StoredRows {
    const number = Math.floor(page / this.#blockPages);
    const apart = PAGE_ROWS * this.#width;
    let rows = this.#blocks.get(number);
    if (rows === undefined) {
      rows = this.#memory.take(this.#blockPages * this.#parts * apart);
      this.#blocks.set(number, rows);
    }
    const first = (page % this.#blockPages) * this.#parts * apart + (position % PAGE_ROWS) * this.#width;
    return { rows, first, apart };
  }

  /** Copies the first `count` rows of a page. */
  copyRows(fromPage: number, toPage: number, count: number): void {
    const from = this.at(fromPage, 0);
    const to = this.at(toPage, 0);
    for (let part = 0; part < this.#parts; part++) {
      const begin = from.first + part * from.apart;
      to.rows.set(from.rows.subarray(begin, begin + count * this.#width), to.first + part * to.apart);
    }
  }

  /** Copies a page of the pool of another version of the model. */
  copyPage(source: RowPool, fromPage: number, toPage: number): void {
    const from = source.at(fromPage, 0);
    const to = this.at(toPage, 0);
    const size = this.#parts * from.apart;
    to.rows.set(from.rows.subarray(from.first, from.first + size), to.first);
  }

  /** Returns the memory at once; the garbage collector would keep the memory of a whole version for a while. */
  dispose(): void {
    this.#memory.keep([...this.#blocks.values()]);
    this.#blocks.clear();
  }
}
