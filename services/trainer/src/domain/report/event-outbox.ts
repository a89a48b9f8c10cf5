/**
 * Events of one run on their way to the stream, in order, without the loop waiting for them.
 *
 * O1: events leave one after the other, each tried until the stream has it, so a reader sees them in their order.
 * O2: progress is worth something only while it is fresh: beyond a small backlog it is dropped. Other events are few
 *     (several a step) and are never dropped.
 * O3: `drain` waits for what is queued; it ends early only with the signal.
 */

import { describeError, retry } from "@hone/core";
import type { Logger } from "@hone/telemetry";
import type { RunEvent, RunEvents } from "./run-event.ts";

/** Progress events that may wait. */
const MAX_PROGRESS_BACKLOG = 8;

export class EventOutbox {
  readonly #runId: string;
  readonly #events: RunEvents;
  readonly #logger: Logger;
  readonly #signal: AbortSignal;
  #tail: Promise<void> = Promise.resolve();
  #backlog = 0;

  constructor(runId: string, events: RunEvents, logger: Logger, signal: AbortSignal) {
    this.#runId = runId;
    this.#events = events;
    this.#logger = logger;
    this.#signal = signal;
  }

  /** @param messageId makes the event one that is stored once, however often it is sent. */
  send(event: RunEvent, messageId?: string): void {
    const isProgress = event.kind === "progress" || event.kind === "warm-start";
    if (isProgress && this.#backlog >= MAX_PROGRESS_BACKLOG) return; // O2
    this.#backlog++;
    this.#tail = this.#tail.then(() => this.#deliver(event, messageId)).finally(() => this.#backlog--);
  }

  drain(): Promise<void> {
    return this.#tail;
  }

  async #deliver(event: RunEvent, messageId: string | undefined): Promise<void> {
    try {
      await retry(() => this.#events.publish(this.#runId, event, messageId), {
        signal: this.#signal,
      });
    } catch (error) {
      if (this.#signal.aborted) return;
      this.#logger.error("an event is lost", { event: event.kind, error: describeError(error) });
    }
  }
}
