/**
 * Hands out the rows of a K/V pool. Row 0 is never handed out: it stays zero, and fills what a batch pads.
 *
 * Fresh rows come in ascending order before freed ones are used again, so that what is computed together lies
 * together, and memory is touched only as far as it was ever needed.
 */

export class RowPool {
  /** Rows in all, row 0 included. */
  readonly capacity: number;
  #nextFresh = 1;
  readonly #freed: Int32Array;
  #freedCount = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#freed = new Int32Array(capacity);
  }

  /** Rows that can be taken. */
  get free(): number {
    return this.capacity - this.#nextFresh + this.#freedCount;
  }

  /** One past the highest row ever handed out: how large the buffers have to be. */
  get highWater(): number {
    return this.#nextFresh;
  }

  /** Writes `count` rows into `target` from `offset` on. @returns false, taking none, when there are too few. */
  take(count: number, target: Int32Array, offset: number): boolean {
    if (count > this.free) return false;
    for (let i = 0; i < count; i++) {
      target[offset + i] = this.#freedCount > 0 ? this.#freed[--this.#freedCount]! : this.#nextFresh++;
    }
    return true;
  }

  give(row: number): void {
    this.#freed[this.#freedCount++] = row;
  }
}
