/**
 * A client's lease of an episode.
 *
 * L1: It expires when its client gives no sign of life for `leaseMs`. While a call of the model is answered the client waits, so
 *     the lease stands.
 * L2: The attempt's clock is stopped for as long as there is a lease. The time between two signs of life is charged at the second
 *     one, so the time after the last sign of a client that vanished is never charged: such an attempt is lost, not timed out.
 */

import type { AttemptClock } from "@hone/agents";
import { allowedMs } from "@hone/core";

export interface LeaseOptions {
  readonly leaseMs: number;
  /** Stopped by the caller before the lease begins. */
  readonly clock: Pick<AttemptClock, "start" | "stop">;
  readonly onExpired: () => void;
}

export class Lease {
  readonly #options: LeaseOptions;
  #silentSince = performance.now();
  #callsAtWork = 0;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#arm();
  }

  /** A sign of life. The clock may expire by what it is charged. */
  renew(): void {
    if (this.#isOver || this.#callsAtWork > 0) return;
    this.#charge();
    this.#arm();
  }

  /** A call of the model begins. @returns a function to call once when it ends. */
  enterCall(): () => void {
    if (this.#isOver) return () => undefined;
    if (this.#callsAtWork === 0) this.#charge();
    this.#callsAtWork++;
    clearTimeout(this.#timer);
    return () => {
      if (--this.#callsAtWork > 0 || this.#isOver) return;
      this.#silentSince = performance.now();
      this.#arm();
    };
  }

  /** Ends the lease: it neither expires nor charges anything any more, and leaves the clock stopped. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  /** L2 */
  #charge(): void {
    const now = performance.now();
    const silentMs = now - this.#silentSince;
    this.#silentSince = now;
    this.#options.clock.start(silentMs);
    this.#options.clock.stop();
  }

  #arm(): void {
    clearTimeout(this.#timer);
    // What the clock was charged may have ended the attempt, and the lease with it.
    if (this.#isOver) return;
    this.#timer = setTimeout(() => {
      this.end();
      this.#options.onExpired();
    }, allowedMs(this.#options.leaseMs));
  }
}
