/**
 * Allocates the pages of a K/V pool and counts their holders. A page has the rows of PAGE_ROWS consecutive positions.
 *
 * Page 0 is never allocated: it stays zero, and is used for padding. New pages are allocated in ascending order, and only if none is
 * left freed ones again, so that only the memory that was ever needed at once is written to.
 */

export class PagePool {
  /** Number of all pages, with page 0. */
  readonly capacity: number;
  #nextFresh = 1;
  readonly #freed: Int32Array;
  #freedCount = 0;
  readonly #holders: Int32Array;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#freed = new Int32Array(capacity);
    this.#holders = new Int32Array(capacity);
  }

  /** Pages that can be taken. */
  get free(): number {
    return this.capacity - this.#nextFresh + this.#freedCount;
  }

  /** Writes `count` pages into `target` from `offset` on, each with one holder. @returns false, and takes none, when there are too few. */
  take(count: number, target: Int32Array, offset: number): boolean {
    if (count > this.free) return false;
    for (let i = 0; i < count; i++) {
      const page = this.#freedCount > 0 ? this.#freed[--this.#freedCount]! : this.#nextFresh++;
      this.#holders[page] = 1;
      target[offset + i] = page;
    }
    return true;
  }

  /** Adds a holder. */
  hold(page: number): void {
    this.#holders[page]!++;
  }

  /** Removes a holder; a page without holders is free. */
  release(page: number): void {
    if (--this.#holders[page]! === 0) this.#freed[this.#freedCount++] = page;
  }
}
