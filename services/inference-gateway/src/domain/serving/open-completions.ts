/**
 * The completions under way, so that a service that stops lets them end.
 *
 * O1: after `drain` began nothing new is taken; what runs may end until its signal aborts, and is then cut off.
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
   * @param signal of the client; `work` gets one that aborts with it, or when the drain's time is over.
   * @throws {EngineFailedError} when this replica stops.
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
  return new EngineFailedError("Cannot answer as this replica ends: current value is stopping");
}
