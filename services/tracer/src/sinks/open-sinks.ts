/**
 * The sinks of events by name. A sink is a file in this folder that exports a function which makes an {@link EventSink}. Each
 * sink has its own consumer, which replicas share (`EventSinkDurable` in libs/messaging), so that no sink waits for another.
 */

import type { EventSinkName } from "@hone/messaging";
import type { Database } from "@hone/storage";
import type { TracerConfig } from "../config.ts";
import { writeEvents } from "../db/write-events.ts";
import type { EventSink } from "../domain/event-sink.ts";

/** What sinks are made from. */
export interface SinkContext {
  readonly config: TracerConfig;
  readonly database: Database;
}

/** @returns undefined for a sink that the operator has not configured; nothing reads its consumer then. */
export function openSinks({ database }: SinkContext): Record<EventSinkName, EventSink | undefined> {
  return { database: { write: (facts) => writeEvents(database, facts) } };
}
