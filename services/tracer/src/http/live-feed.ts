/**
 * Tells open pages which runs have changed.
 *
 * L1: the database is asked, not this process's memory, so a page sees what every replica writes.
 * L2: it is asked only while a page is open, once for all pages, at most once per interval.
 * L3: a page that reads too slowly misses nothing: it is told the set of runs that changed since it was told last.
 * L4: what changes after `open` resolved is told; a page that then reads everything once misses nothing either.
 */

import { pause } from "@hone/core";
import type { Logger } from "@hone/telemetry";

/** A reward that appears within this time feels live. */
const POLL_INTERVAL_MS = 500;

export class LiveFeed {
  readonly #read: () => Promise<ReadonlyMap<string, number>>;
  readonly #logger: Logger;
  readonly #signal: AbortSignal;
  readonly #listeners = new Set<(changed: ReadonlySet<string>) => void>();
  #polling: { readonly begun: Promise<void> } | undefined;

  /** @param read revision of each run. @param signal ends the feed. */
  constructor(read: () => Promise<ReadonlyMap<string, number>>, logger: Logger, signal: AbortSignal) {
    this.#read = read;
    this.#logger = logger;
    this.#signal = signal;
  }

  /** The sets of runs that change from now on (L4), until the signal aborts. */
  async open(signal: AbortSignal): Promise<AsyncGenerator<ReadonlySet<string>>> {
    const ended = AbortSignal.any([signal, this.#signal]);
    const pending = new Set<string>();
    let wake: (() => void) | undefined;
    const listener = (changed: ReadonlySet<string>) => {
      for (const run of changed) pending.add(run);
      wake?.();
    };
    this.#listeners.add(listener);
    ended.addEventListener(
      "abort",
      () => {
        this.#listeners.delete(listener);
        wake?.();
      },
      { once: true },
    );
    if (ended.aborted) this.#listeners.delete(listener);
    this.#polling ??= this.#poll();
    await this.#polling.begun;
    return (async function* changes() {
      while (!ended.aborted) {
        if (pending.size === 0) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
          continue;
        }
        const changed = new Set(pending);
        pending.clear();
        yield changed;
      }
    })();
  }

  /** Asks until nobody listens (L2); `begun` resolves when it is known what later changes are compared with. */
  #poll(): { begun: Promise<void> } {
    const begun = Promise.withResolvers<void>();
    const run = async () => {
      let known = await this.#tryRead(new Map());
      begun.resolve();
      while (this.#listeners.size > 0 && !this.#signal.aborted) {
        // An aborted pause ends the loop by its condition.
        await pause(POLL_INTERVAL_MS, this.#signal);
        const revisions = await this.#tryRead(known);
        const changed = new Set<string>();
        for (const [run, revision] of revisions) if (known.get(run) !== revision) changed.add(run);
        known = revisions;
        if (changed.size > 0) for (const listener of this.#listeners) listener(changed);
      }
      this.#polling = undefined;
    };
    void run();
    return { begun: begun.promise };
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
