/**
 * Limits how fast one run may fill the queue that all runs share. The queue is first in, first out: if one run published
 * all its jobs at once, every other run would wait until they are done.
 *
 * Q1: The first jobs of a step or evaluation are published at once, so that one of the usual size never waits.
 * Q2: Further jobs are published only while few jobs of all runs are waiting in the queue. So a run with 64 jobs that starts
 *     beside a run with 50,000 waits behind about a thousand of them, not behind all.
 * Q3: A run that must wait reports it, and continues when agent-rollout has taken enough jobs; the signal ends the wait.
 */

import { delay } from "@hone/core";

/** Number of jobs that are published without a check of the queue (Q1). */
export const FREE_JOBS = 512;
/**
 * While this many jobs of all runs wait in the queue, no more are published (Q2). It is few enough that agent-rollout takes
 * them within seconds, and many enough that agent-rollout always has work until the queue is checked again.
 */
export const ENOUGH_WAITING = 1_024;
/** Time between two checks of the queue; each check is one request to the server. */
const LOOK_INTERVAL_MS = 100;

export interface JobPacerDeps {
  /** @returns the number of jobs of all runs that wait in the queue; while the bus is unavailable, it reports so and waits. */
  readonly waitingJobs: () => Promise<number>;
  /** Called with the number of waiting jobs when a job must wait, and with undefined when publishing continues (Q3). */
  readonly onHeld: (waiting: number | undefined) => void;
  readonly signal: AbortSignal;
}

export class JobPacer {
  readonly #deps: JobPacerDeps;
  #allowed = FREE_JOBS;
  #refill: Promise<void> | undefined;

  constructor(deps: JobPacerDeps) {
    this.#deps = deps;
  }

  /** Resolves when one more job may be published. @throws the reason of the signal. */
  async waitUntilAllowed(): Promise<void> {
    while (this.#allowed === 0) {
      this.#refill ??= this.#wait().finally(() => {
        this.#refill = undefined;
      });
      await this.#refill;
    }
    this.#allowed--;
  }

  async #wait(): Promise<void> {
    const { waitingJobs, onHeld, signal } = this.#deps;
    for (;;) {
      signal.throwIfAborted();
      const waiting = await waitingJobs();
      if (waiting < ENOUGH_WAITING) {
        this.#allowed = ENOUGH_WAITING - waiting;
        onHeld(undefined);
        return;
      }
      onHeld(waiting);
      await delay(LOOK_INTERVAL_MS, { signal });
    }
  }
}
