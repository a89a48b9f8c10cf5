/**
 * Keeps `rollout.maxConcurrency`: at most this many jobs of a run are in the queue, waiting or in work.
 *
 * M1: What counts is the server's number of the run's jobs. So the limit holds over all processes of agent-rollout together, and
 *     jobs that an earlier owner of the run published count too.
 * M2: A job counts before it is published, because the server may not have counted it yet, until agent-rollout acknowledges it,
 *     which is after its episode was stored.
 * M3: While the limit is reached, the jobs are counted at each rollout that arrives, and now and then without one, as jobs also
 *     leave the queue otherwise. The signal ends the wait.
 */

import { pause, raceAbortable } from "@hone/core";

/** The longest time between two counts while jobs wait; each count is one request to the server. */
const COUNT_INTERVAL_MS = 100;

export interface JobLimitDeps {
  /** Most jobs of the run in the queue. */
  readonly most: number;
  /** @returns the number of the run's jobs in the queue; while the bus is unavailable, it waits. */
  readonly jobsInQueue: () => Promise<number>;
  readonly signal: AbortSignal;
}

export class JobLimit {
  readonly #deps: JobLimitDeps;
  #allowed = 0;
  /** Jobs that are allowed and whose publishing has not ended (M2). */
  #publishing = 0;
  #counting: Promise<void> | undefined;
  /** Aborts when a rollout arrives (M3). */
  #arrival = new AbortController();

  constructor(deps: JobLimitDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when one more job may be published; the caller then calls {@link published} when it is, or is not any more.
   * @param onHeld called when the job must wait.
   * @throws the reason of the signal.
   */
  async enter(signal: AbortSignal, onHeld: () => void): Promise<void> {
    while (this.#allowed === 0) {
      signal.throwIfAborted();
      this.#counting ??= this.#untilRoom(onHeld).finally(() => {
        this.#counting = undefined;
      });
      await raceAbortable(this.#counting, signal);
    }
    this.#allowed--;
    this.#publishing++;
  }

  /** Says that the publishing of a job that entered has ended. */
  published(): void {
    this.#publishing--;
  }

  /** Says that a rollout of the run has arrived, so that one of its jobs may have left the queue. */
  arrived(): void {
    if (this.#counting === undefined) return;
    this.#arrival.abort();
    this.#arrival = new AbortController();
  }

  async #untilRoom(onHeld: () => void): Promise<void> {
    const { most, jobsInQueue, signal } = this.#deps;
    for (;;) {
      signal.throwIfAborted();
      const next = AbortSignal.any([signal, this.#arrival.signal]);
      const publishing = this.#publishing; // read first: one that is stored meanwhile counts twice, which does no harm
      const room = most - publishing - (await jobsInQueue());
      if (room > 0) {
        this.#allowed = room;
        return;
      }
      onHeld();
      await pause(COUNT_INTERVAL_MS, next);
    }
  }
}
