/**
 * Tells open pages which runs have changed.
 *
 * L1: the database is asked, not this process's memory, so a page sees what every replica writes.
 * L2: it is asked only while a page is open, once for all pages, at most once per interval.
 * L3: a page that reads too slowly misses nothing: it is told the set of runs that changed since it was told last.
 */

import { delay } from "@hone/core";
import type { Logger } from "@hone/telemetry";

/** A reward that appears within this time feels live. */
const POLL_INTERVAL_MS = 500;

export class LiveFeed {
  readonly #read: () => Promise<ReadonlyMap<string, number>>;
  readonly #logger: Logger;
  readonly #signal: AbortSignal;
  readonly #listeners = new Set<(changed: ReadonlySet<string>) => void>();
  #known: ReadonlyMap<string, number> = new Map();
  #polling: Promise<void> | undefined;

  /** @param read revision of each run. @param signal ends the feed. */
  constructor(read: () => Promise<ReadonlyMap<string, number>>, logger: Logger, signal: AbortSignal) {
    this.#read = read;
    this.#logger = logger;
    this.#signal = signal;
  }

  /** The sets of runs that changed, from now on, until the signal aborts (L3). */
  async *changes(signal: AbortSignal): AsyncGenerator<ReadonlySet<string>> {
    const ended = AbortSignal.any([signal, this.#signal]);
    let pending = new Set<string>();
    let wake: (() => void) | undefined;
    const listener = (changed: ReadonlySet<string>) => {
      for (const run of changed) pending.add(run);
      wake?.();
    };
    const onAbort = () => wake?.();
    ended.addEventListener("abort", onAbort, { once: true });
    this.#listeners.add(listener);
    this.#start();
    try {
      while (!ended.aborted) {
        if (pending.size === 0) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
          continue;
        }
        const changed = pending;
        pending = new Set();
        yield changed;
      }
    } finally {
      this.#listeners.delete(listener);
      ended.removeEventListener("abort", onAbort);
    }
  }

  #start(): void {
    this.#polling ??= this.#poll().finally(() => {
      this.#polling = undefined;
      // A page may have come while the last turn of the loop ended.
      if (this.#listeners.size > 0 && !this.#signal.aborted) this.#start();
    });
  }

  async #poll(): Promise<void> {
    this.#known = await this.#tryRead(this.#known);
    while (this.#listeners.size > 0 && !this.#signal.aborted) {
      // An aborted pause ends the loop by its condition.
      await delay(POLL_INTERVAL_MS, { signal: this.#signal }).catch(() => undefined);
      const revisions = await this.#tryRead(this.#known);
      const changed = new Set<string>();
      for (const [run, revision] of revisions) if (this.#known.get(run) !== revision) changed.add(run);
      this.#known = revisions;
      if (changed.size > 0) for (const listener of this.#listeners) listener(changed);
    }
  }

  async #tryRead(before: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>> {
    try {
      return await this.#read();
    } catch (error) {
      this.#logger.warn("open pages are not told of changes for a moment", { error });
      return before;
    }
  }
}
