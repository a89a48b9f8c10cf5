/**
 * A queue between a producer and one consumer, with a bound.
 *
 * Q1: `offer` never waits: it says no when the queue is full, and the producer decides what that means.
 * Q2: after `close` the consumer still gets what was queued, then the end.
 * Q3: one consumer: a second iteration throws.
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
      throw new RangeError(
        `Cannot make a queue as its capacity must be a positive integer: current value is ${capacity}`,
      );
    }
    this.capacity = capacity;
  }

  get size(): number {
    return this.#items.length;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Adds an item. @returns false, and drops nothing, when the queue is full or closed (Q1). */
  offer(item: T): boolean {
    if (this.#isClosed || this.#items.length >= this.capacity) return false;
    this.#items.push(item);
    this.#wakeUp();
    return true;
  }

  /** Takes all that is queued without waiting. */
  drain(): T[] {
    return this.#items.splice(0);
  }

  /** No item comes any more (Q2). */
  close(): void {
    this.#isClosed = true;
    this.#wakeUp();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    if (this.#isConsumed)
      throw new TerminalError(
        "QUEUE_CONSUMED",
        "Cannot iterate a queue as it has a consumer already: current value is 1",
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
