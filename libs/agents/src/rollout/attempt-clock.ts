/**
 * The time of one attempt: runs while the agent, its tools and its environment work, stands while Hone's own parts are
 * waited for.
 *
 * K1: while it is stopped it never expires; what of the stop belongs to the attempt is charged afterwards.
 * K2: it expires once, and calls `onExpired` then.
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

  /** What has been used up, in milliseconds. */
  get spentMs(): number {
    return this.#spentMs + (this.#runningSince === undefined ? 0 : performance.now() - this.#runningSince);
  }

  get remainingMs(): number {
    return Math.max(0, this.deadlineMs - this.spentMs);
  }

  get isExpired(): boolean {
    return this.#isExpired;
  }

  /** Stops it; several holders may, and it runs again when the last one starts it (K1). */
  stop(): void {
    if (this.#stops++ > 0) return;
    this.#pause();
  }

  /** @param chargedMs what of the stop counts after all. */
  start(chargedMs: number): void {
    this.#spentMs += chargedMs;
    if (--this.#stops > 0 || this.#isExpired) return;
    this.#run();
  }

  /** Ends it; it never expires afterwards. */
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
    // Timers take whole milliseconds: rounded up, so that it never expires early.
    else this.#timer = setTimeout(expire, Math.ceil(this.remainingMs));
  }
}
