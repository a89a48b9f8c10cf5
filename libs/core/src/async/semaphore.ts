/** A limit on how many do something at once. */

import type { WaitOptions } from "./delay.ts";

/** Waiters are served in the order in which they came. */
export class Semaphore {
  #free: number;
  #waiters: Array<() => void> = [];

  constructor(permits: number) {
    this.#free = permits;
  }

  get free(): number {
    return this.#free;
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  /**
   * Waits for a permit.
   * @returns the function that gives it back; calling it twice does nothing.
   * @throws the reason of the signal when it aborts first.
   */
  async acquire(options: WaitOptions = {}): Promise<() => void> {
    options.signal?.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
    } else {
      await new Promise<void>((resolve, reject) => {
        const waiter = () => {
          options.signal?.removeEventListener("abort", onAbort);
          resolve();
        };
        const onAbort = () => {
          this.#waiters = this.#waiters.filter((other) => other !== waiter);
          reject(options.signal?.reason);
        };
        this.#waiters.push(waiter);
        options.signal?.addEventListener("abort", onAbort, { once: true });
      });
    }
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      const next = this.#waiters.shift();
      if (next === undefined) this.#free++;
      else next();
    };
  }
}
