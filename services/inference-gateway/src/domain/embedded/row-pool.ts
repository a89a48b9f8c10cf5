/**
 * Keys and values of all sequences of one policy version of a large model: a row for each token, as its run put it out:
 * [2*layers*G*D], the keys of layer 0, 1, ..., then the values (G key/value heads, D head size). Runs read them from slots
 * (context-slots.ts), which are filled from here.
 *
 * Rows lie in pages and pages in blocks, which are made when they are first written to: what one token brings is written
 * in one piece, and memory grows with the tokens.
 */

import { type ModelSpec, PAGE_ROWS } from "@hone/nn";
import { contextBytesPerToken, free, isAllFinite } from "./kv-pool.ts";

/** Large enough for large pages of memory. */
const BLOCK_BYTES = 32 * 2 ** 20;

/** Rows of consecutive positions within a page. */
export interface StoredRows {
  /** Of a whole block. */
  readonly rows: Float32Array;
  /** Which row of the block is the first one. */
  readonly first: number;
}

export class RowPool {
  /** In pages. */
  readonly capacity: number;
  readonly #rowSize: number;
  readonly #blockPages: number;
  readonly #blocks = new Map<number, Float32Array>();

  constructor(spec: ModelSpec, capacity: number) {
    this.capacity = capacity;
    const rowBytes = contextBytesPerToken(spec);
    this.#rowSize = rowBytes / Float32Array.BYTES_PER_ELEMENT;
    this.#blockPages = Math.max(1, Math.floor(BLOCK_BYTES / (PAGE_ROWS * rowBytes)));
  }

  /**
   * Writes rows of consecutive positions in one page; all as zeros where one is not finite.
   * @param fresh [N, row]
   * @param token which of the N is the first one.
   * @returns whether they were finite.
   */
  write(page: number, position: number, fresh: Float32Array, token: number, count: number): boolean {
    const { rows, first } = this.at(page, position);
    const size = this.#rowSize;
    const [begin, end] = [token * size, (token + count) * size];
    const isSound = isAllFinite(fresh, begin, end);
    if (isSound) rows.set(fresh.subarray(begin, end), first * size);
    else rows.fill(0, first * size, (first + count) * size);
    return isSound;
  }

  /** The rows of a page from a position's on. */
  at(page: number, position: number): StoredRows {
    const number = Math.floor(page / this.#blockPages);
    let rows = this.#blocks.get(number);
    if (rows === undefined) {
      rows = new Float32Array(this.#blockPages * PAGE_ROWS * this.#rowSize);
      this.#blocks.set(number, rows);
    }
    return { rows, first: (page % this.#blockPages) * PAGE_ROWS + (position % PAGE_ROWS) };
  }

  /** Copies the first `count` rows of a page. */
  copyRows(fromPage: number, toPage: number, count: number): void {
    const size = this.#rowSize;
    const from = this.at(fromPage, 0);
    const to = this.at(toPage, 0);
    to.rows.set(from.rows.subarray(from.first * size, (from.first + count) * size), to.first * size);
  }

  /** Gives the memory back at once; waiting for the collector would keep a version's worth of it for a while. */
  dispose(): void {
    for (const rows of this.#blocks.values()) free(rows);
    this.#blocks.clear();
  }
}
