/**
 * How fast one run may fill the queue that all runs share. The queue is first in, first out: what one run puts there all
 * at once, every other run waits for.
 *
 * Q1: the first jobs of a gathering go out without asking, so that a step of the usual size never waits.
 * Q2: further ones go out while few jobs of all runs wait to be taken. A run that comes with 64 jobs beside one with
 *     50,000 therefore stands behind a thousand of those, not behind all.
 * Q3: who is held says so, and goes on when agent-rollout has taken enough; the signal ends the wait.
 */

import { delay } from "@hone/core";

/** Jobs of one gathering that go out without asking (Q1). */
export const FREE_JOBS = 512;
/**
 * Jobs of all runs that may wait to be taken before more go out (Q2): what agent-rollout takes within seconds, and enough
 * that it never runs dry between two looks.
 */
export const ENOUGH_WAITING = 1_024;
/** Between two looks; one costs the server a lookup. */
const LOOK_INTERVAL_MS = 100;

export interface JobPacerDeps {
  /** Jobs of all runs that nobody has taken; waits and tells by itself while the bus is away. */
  readonly waitingJobs: () => Promise<number>;
  /** Told how many wait when a job is held, and undefined when it goes on (Q3). */
  readonly onHeld: (waiting: number | undefined) => void;
  readonly signal: AbortSignal;
}

export class JobPacer {
  readonly #deps: JobPacerDeps;
  #leaves = FREE_JOBS;
  #refill: Promise<void> | undefined;

  constructor(deps: JobPacerDeps) {
    this.#deps = deps;
  }

  /** Resolves when one more job may go out. @throws the reason of the signal. */
  async leave(): Promise<void> {
    while (this.#leaves === 0) {
      this.#refill ??= this.#wait().finally(() => {
        this.#refill = undefined;
      });
      await this.#refill;
    }
    this.#leaves--;
  }

  async #wait(): Promise<void> {
    const { waitingJobs, onHeld, signal } = this.#deps;
    for (;;) {
      signal.throwIfAborted();
      const waiting = await waitingJobs();
      if (waiting < ENOUGH_WAITING) {
        this.#leaves = ENOUGH_WAITING - waiting;
        onHeld(undefined);
        return;
      }
      onHeld(waiting);
      await delay(LOOK_INTERVAL_MS, { signal });
    }
  }
}
