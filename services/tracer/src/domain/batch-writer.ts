/**
 * Combines many small writes into few large ones.
 *
 * B1: `add` resolves after its item is written, and rejects when it could not be written, so a caller can acknowledge a
 *     message after it.
 * B2: there is one write at a time, in the order in which items came.
 * B3: a batch is written when it is full or after a short delay. The first item never waits longer than this delay and
 *     the previous write.
 * B4: when a batch is refused because of its items, they are written one by one, so that one bad item does not keep the
 *     others from being stored.
 * B5: nothing is dropped here; a caller that must not wait checks `waiting` first.
 */

/** Options of {@link BatchWriter}. */
export interface BatchWriterOptions<Item> {
  /** Writes all of the items or none. */
  readonly write: (items: readonly Item[]) => Promise<void>;
  /** Most items of one write. */
  readonly maxItems: number;
  /** Longest wait for more items. */
  readonly maxDelayMs: number;
  /** Whether a failure is due to the items, and not to a database that does not answer (B4). */
  readonly isItemsFault: (error: unknown) => boolean;
}

interface Waiting<Item> {
  readonly item: Item;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class BatchWriter<Item> {
  readonly #options: BatchWriterOptions<Item>;
  #waiting: Waiting<Item>[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;

  constructor(options: BatchWriterOptions<Item>) {
    this.#options = options;
  }

  /** Number of items that are not being written yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Resolves when the item is written (B1). */
  add(item: Item): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push({ item, resolve, reject });
    this.#schedule();
    return promise;
  }

  /** Writes all waiting items and resolves when none is left. A failure rejects the promise of its item, not this one. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#waiting.length > 0 || this.#writing !== undefined) await (this.#writing ?? this.#start());
  }

  #schedule(): void {
    if (this.#writing !== undefined) return; // B2: the next write is scheduled when the running one ends
    if (this.#waiting.length >= this.#options.maxItems) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      void this.#start();
    } else if (this.#waiting.length > 0) {
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined;
        if (this.#writing === undefined) void this.#start();
      }, this.#options.maxDelayMs); // B3
    }
  }

  /** Starts one write; the returned promise never rejects. */
  #start(): Promise<void> {
    const batch = this.#waiting.splice(0, this.#options.maxItems);
    this.#writing = this.#writeBatch(batch).finally(() => {
      this.#writing = undefined;
      this.#schedule();
    });
    return this.#writing;
  }

  async #writeBatch(batch: readonly Waiting<Item>[]): Promise<void> {
    try {
      await this.#options.write(batch.map(({ item }) => item));
      for (const { resolve } of batch) resolve();
    } catch (error) {
      if (batch.length > 1 && this.#options.isItemsFault(error)) {
        for (const waiting of batch) await this.#writeBatch([waiting]); // B4
      } else {
        for (const { reject } of batch) reject(error);
      }
    }
  }
}
