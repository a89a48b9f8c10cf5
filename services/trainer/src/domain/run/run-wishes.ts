/** What people asked of a run, for its loop to look at and to wait on. */

import { raceAbortable } from "@hone/core";
import type { RunWishes } from "../step/ledger.ts";

export class WishBoard {
  #wishes: RunWishes;
  #changed = Promise.withResolvers<void>();

  constructor(initial: RunWishes) {
    this.#wishes = initial;
  }

  get isPauseRequested(): boolean {
    return this.#wishes.isPauseRequested;
  }

  get isCancelRequested(): boolean {
    return this.#wishes.isCancelRequested;
  }

  set(wishes: RunWishes): void {
    this.#wishes = wishes;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  /** Returns once nobody wants the run to pause. Unblocked by `set`, which the lease's renewal calls. */
  async untilResumed(signal: AbortSignal): Promise<void> {
    while (this.#wishes.isPauseRequested) await raceAbortable(this.#changed.promise, signal);
  }
}
