/** What people have asked of a run (pause, cancel), for its loop to check and to wait for. */

import { raceAbortable } from "@hone/core";
import type { ControlRequests } from "../step/ledger.ts";

export class RequestedControl {
  #requested: ControlRequests;
  #changed = Promise.withResolvers<void>();

  constructor(initial: ControlRequests) {
    this.#requested = initial;
  }

  get isPauseRequested(): boolean {
    return this.#requested.isPauseRequested;
  }

  get isCancelRequested(): boolean {
    return this.#requested.isCancelRequested;
  }

  set(requested: ControlRequests): void {
    this.#requested = requested;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  /** Returns once no pause is requested. `set`, which the renewal of the lease calls, unblocks it. */
  async untilResumed(signal: AbortSignal): Promise<void> {
    while (this.#requested.isPauseRequested) await raceAbortable(this.#changed.promise, signal);
  }
}
