/**
 * Keeps track of the completions that run, so that a stopping service can let them end.
 *
 * O1: once `drain` has begun, new completions are refused. Those that run may end until its signal aborts, and are then cut off.
 */

import { EngineFailedError } from "../errors.ts";

export class OpenCompletions {
  readonly #open = new Set<Promise<unknown>>();
  readonly #cutOff = new AbortController();
  #isDraining = false;

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /**
   * @param signal aborts when the client goes away; `work` gets one that also aborts when the time of the drain is over.
   * @throws {EngineFailedError} when this replica is stopping.
   */
  async run<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#isDraining) throw stopping();
    const working = work(AbortSignal.any([signal, this.#cutOff.signal]));
    this.#open.add(working);
    try {
      return await working;
    } finally {
      this.#open.delete(working);
    }
  }

  /** O1 */
  async drain(signal: AbortSignal): Promise<void> {
    this.#isDraining = true;
    const cutOff = () => this.#cutOff.abort(stopping());
    signal.addEventListener("abort", cutOff, { once: true });
    if (signal.aborted) cutOff();
    await Promise.allSettled(this.#open);
    signal.removeEventListener("abort", cutOff);
  }
}

function stopping(): EngineFailedError {
  return new EngineFailedError("This replica is stopping");
}
