/**
 * Measures the time of one attempt: the clock runs while the agent, its tools and its environment work, and is stopped while
 * the attempt waits for Hone's own services.
 *
 * K1: while stopped, the clock never expires; the part of the stop that counts for the attempt is charged afterwards.
 * K2: it expires once, and then calls `onExpired`.
 */

import { allowedMs } from "@hone/core";

export class AttemptClock {
  readonly deadlineMs: number;
  readonly #onExpired: () => void;
  #spentMs = 0;
  #runningSince: number | undefined;
  #stops = 0;
  #timer: NodeJS.Timeout | undefined;
  #isExpired = false;

  constructor(deadlineMs: number, onExpired: () => void) {
    this.deadlineMs = allowedMs(deadlineMs);
    this.#onExpired = onExpired;
    this.#run();
  }

  /** Time used up, in milliseconds. */
  get spentMs(): number {
    return this.#spentMs + (this.#runningSince === undefined ? 0 : performance.now() - this.#runningSince);
  }

  get remainingMs(): number {
    return Math.max(0, this.deadlineMs - this.spentMs);
  }

  get isExpired(): boolean {
    return this.#isExpired;
  }

  /** Stops the clock. Several callers may stop it; it runs again when all of them have called {@link start} (K1). */
  stop(): void {
    if (this.#stops++ > 0) return;
    this.#pause();
  }

  /** @param chargedMs the part of the stop that counts for the attempt. */
  start(chargedMs: number): void {
    this.#spentMs += chargedMs;
    if (--this.#stops > 0 || this.#isExpired) return;
    this.#run();
  }

  /** Ends the clock; it never expires afterwards. */
  end(): void {
    this.#pause();
    this.#stops++;
  }

  #pause(): void {
    if (this.#runningSince === undefined) return;
    this.#spentMs = this.spentMs;
    this.#runningSince = undefined;
    clearTimeout(this.#timer);
  }

  #run(): void {
    this.#runningSince = performance.now();
    const expire = () => {
      if (this.#isExpired) return;
      this.#isExpired = true;
      this.#pause();
      this.#onExpired();
    };
    if (this.remainingMs === 0) expire();
    // Timers take whole milliseconds; rounding up ensures that the clock never expires early.
    else this.#timer = setTimeout(expire, Math.ceil(this.remainingMs));
  }
}
