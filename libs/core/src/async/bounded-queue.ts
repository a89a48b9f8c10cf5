/**
 * A queue of bounded length between a producer and one consumer.
 *
 * Q1: `offer` never waits: it returns false when the queue is full, and the producer decides what to do about it.
 * Q2: after `close` the consumer still gets what was queued; then its iteration ends.
 * Q3: there is one consumer; a second iteration throws.
 */

import { TerminalError } from "../errors.ts";

export class BoundedQueue<T> implements AsyncIterable<T> {
  readonly capacity: number;
  #items: T[] = [];
  #wake: (() => void) | undefined;
  #isClosed = false;
  #isConsumed = false;

  constructor(capacity: number) {
    if (!Number.isInteger(capacity) || capacity < 1) {
      throw new RangeError(`A queue cannot have the capacity ${capacity}; give a positive integer`);
    }
    this.capacity = capacity;
  }

  get size(): number {
    return this.#items.length;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Adds an item. @returns false when the queue is full or closed; the item is then not added (Q1). */
  offer(item: T): boolean {
    if (this.#isClosed || this.#items.length >= this.capacity) return false;
    this.#items.push(item);
    this.#wakeUp();
    return true;
  }

  /** Removes and returns everything that is queued, without waiting. */
  drain(): T[] {
    return this.#items.splice(0);
  }

  /** Ends the queue: no item is accepted any more (Q2). */
  close(): void {
    this.#isClosed = true;
    this.#wakeUp();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    if (this.#isConsumed)
      throw new TerminalError(
        "QUEUE_CONSUMED",
        "This queue has a consumer already; it can be iterated only once",
      );
    this.#isConsumed = true;
    while (true) {
      for (let item = this.#items.shift(); item !== undefined; item = this.#items.shift()) yield item;
      if (this.#isClosed) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #wakeUp(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}
