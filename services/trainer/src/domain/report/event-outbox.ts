/**
 * Sends the events of one run to the stream, in order, without making the loop wait for them.
 *
 * O1: events are sent one after the other, each tried until the stream has it, so a reader sees them in their order.
 * O2: a progress event is useful only while it is fresh: beyond a small backlog it is dropped. Other events are few
 *     (several a step) and are never dropped.
 * O3: `drain` waits for the queued events; only the signal ends it earlier.
 */

import { describeError, retry } from "@hone/core";
import type { Logger } from "@hone/telemetry";
import type { RunEvent, RunEvents } from "./run-event.ts";

/** The most progress events that may wait. */
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

  /** @param messageId the stream stores one event of an id, however often it is sent. */
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
      this.#logger.error("an event could not be sent and is dropped", {
        event: event.kind,
        error: describeError(error),
      });
    }
  }
}
