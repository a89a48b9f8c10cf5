/**
 * Keys and values of all sequences of one policy version of a large model. Runs read them from slots (context-slots.ts),
 * which are filled from here.
 *
 * They are in pages of PAGE_ROWS tokens, each with one part behind the other (row-layout.ts), and pages are in blocks, which
 * are allocated when they are first written to, so memory grows with the tokens.
 */

import { PAGE_ROWS } from "@hone/nn";
import { areWordsFinite, copyWords, type HeadRows, spreadRows } from "./kv-rows.ts";
import type { RowLayout } from "./row-layout.ts";
import type { RowMemory } from "./row-memory.ts";

/** Large enough to get large pages of memory. */
const BLOCK_WORDS = 8 * 2 ** 20;

/** Where a page is. */
export interface StoredPage {
  /** A whole block. */
  readonly words: Int32Array;
  /** The page's first word. */
  readonly first: number;
}

export class RowPool {
  /** In pages. */
  readonly capacity: number;
  readonly layout: RowLayout;
  readonly #blockPages: number;
  readonly #blocks = new Map<number, Int32Array>();
  readonly #memory: RowMemory;

  constructor(layout: RowLayout, capacity: number, memory: RowMemory) {
    this.#memory = memory;
    this.capacity = capacity;
    this.layout = layout;
    this.#blockPages = Math.max(1, Math.floor(BLOCK_WORDS / layout.pageWords));
  }

  /**
   * Writes rows of consecutive positions in one page; all as zeros where one is not finite.
   * @param fresh of each part, one row for each token of a run
   * @param token the first one.
   * @param also where the rows, or the zeros, go as well.
   * @returns whether they were finite.
   */
  write(
    page: number,
    position: number,
    fresh: readonly Int32Array[],
    token: number,
    count: number,
    also?: HeadRows,
  ): boolean {
    const { words, first } = this.at(page);
    let isSound = true;
    for (const [index, part] of this.layout.parts.entries()) {
      const source = fresh[index]!;
      const [begin, end] = [token * part.words, (token + count) * part.words];
      const to = first + part.inPage + (position % PAGE_ROWS) * part.words;
      copyWords(source, begin, words, to, count * part.words);
      if (also !== undefined) spreadRows(source, begin, part, count, also.parts[index]!, also);
      if (part.isFloat) isSound &&= areWordsFinite(source, begin, end);
    }
    if (!isSound) this.#clear(page, position, count, also);
    return isSound;
  }

  /** Writes zeros where {@link write} has written. */
  #clear(page: number, position: number, count: number, also: HeadRows | undefined): void {
    const { words, first } = this.at(page);
    for (const [index, part] of this.layout.parts.entries()) {
      const size = count * part.words;
      const from = first + part.inPage + (position % PAGE_ROWS) * part.words;
      words.fill(0, from, from + size);
      if (also !== undefined) spreadRows(new Int32Array(size), 0, part, count, also.parts[index]!, also);
    }
  }

  /** A page, which has memory from now on. */
  at(page: number): StoredPage {
    const number = Math.floor(page / this.#blockPages);
    let words = this.#blocks.get(number);
    if (words === undefined) {
      // Only rows that were written are read, so it does not matter what the memory held.
      words = this.#memory.take(this.#blockPages * this.layout.pageWords, false);
      this.#blocks.set(number, words);
    }
    return { words, first: (page % this.#blockPages) * this.layout.pageWords };
  }

  /** Copies the first `count` rows of a page. */
  copyRows(fromPage: number, toPage: number, count: number): void {
    const [from, to] = [this.at(fromPage), this.at(toPage)];
    for (const { inPage, words } of this.layout.parts) {
      const begin = from.first + inPage;
      to.words.set(from.words.subarray(begin, begin + count * words), to.first + inPage);
    }
  }

  /** Copies a page of the pool of another version of the model. */
  copyPage(source: RowPool, fromPage: number, toPage: number): void {
    const [from, to] = [source.at(fromPage), this.at(toPage)];
    to.words.set(from.words.subarray(from.first, from.first + this.layout.pageWords), to.first);
  }

  /** Returns the memory at once; the garbage collector would keep the memory of a whole version for a while. */
  dispose(): void {
    this.#memory.keep([...this.#blocks.values()].map((words) => ({ words, isFloat: false })));
    this.#blocks.clear();
  }
}
