/**
 * Reports to open pages which runs have changed.
 *
 * L1: changes are read from the database and not from memory, so a page sees what every replica writes.
 * L2: the database is read only while a page is open, once for all pages and at most once in each interval.
 * L3: a page that reads slowly misses nothing: it gets the set of all runs that changed since its last report.
 * L4: every change after `open` has resolved is reported, so a page that then reads everything once misses nothing.
 */

import { pause } from "@hone/core";
import type { Logger } from "@hone/telemetry";

/** A reader has the impression of seeing changes at once. */
const POLL_INTERVAL_MS = 500;

export class LiveFeed {
  readonly #read: () => Promise<ReadonlyMap<string, number>>;
  readonly #logger: Logger;
  readonly #signal: AbortSignal;
  readonly #listeners = new Set<(changed: ReadonlySet<string>) => void>();
  #polling: { readonly begun: Promise<void> } | undefined;

  /** @param read reads the revision of each run. @param signal ends the feed. */
  constructor(read: () => Promise<ReadonlyMap<string, number>>, logger: Logger, signal: AbortSignal) {
    this.#read = read;
    this.#logger = logger;
    this.#signal = signal;
  }

  /** Gives the sets of runs that change from now on (L4), until the signal aborts. */
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

  /** Reads until no page listens any more (L2); `begun` resolves after the first read, with which later ones are compared. */
  #poll(): { begun: Promise<void> } {
    const begun = Promise.withResolvers<void>();
    const run = async () => {
      let known = await this.#tryRead(new Map());
      begun.resolve();
      while (this.#listeners.size > 0 && !this.#signal.aborted) {
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
      this.#logger.warn("open pages get no reports of changes for the moment", { error });
      return before;
    }
  }
}
