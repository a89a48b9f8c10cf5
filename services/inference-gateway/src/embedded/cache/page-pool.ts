/**
 * Hands out the pages of a K/V pool and counts who holds them. A page holds the rows of PAGE_ROWS consecutive positions.
 *
 * Page 0 is never handed out: it stays zero, and fills what a batch pads. Fresh pages come in ascending order before
 * freed ones are used again, so that memory is touched only as far as it was ever needed.
 */

export class PagePool {
  /** Pages in all, page 0 included. */
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

  /** Writes `count` pages into `target` from `offset` on, each with one holder. @returns false, taking none, when there are too few. */
  take(count: number, target: Int32Array, offset: number): boolean {
    if (count > this.free) return false;
    for (let i = 0; i < count; i++) {
      const page = this.#freedCount > 0 ? this.#freed[--this.#freedCount]! : this.#nextFresh++;
      this.#holders[page] = 1;
      target[offset + i] = page;
    }
    return true;
  }

  /** One more holder. */
  hold(page: number): void {
    this.#holders[page]!++;
  }

  /** One holder less; without any the page is free. */
  letGo(page: number): void {
    if (--this.#holders[page]! === 0) this.#freed[this.#freedCount++] = page;
  }
}
