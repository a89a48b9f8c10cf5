/** Hands the events of runs to a sink; an event is acknowledged after the sink has written it. */

import { describeError, TerminalError } from "@hone/core";
import {
  type Bus,
  consumeWork,
  EventSinkDurable,
  type EventSinkName,
  runOfEvent,
  StreamName,
  subjects,
  UndecodableMessageError,
  type WorkConsumer,
  type WorkItem,
} from "@hone/messaging";
import { type RunEvent, RunEventSchema } from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import type { BatchWriter } from "../domain/batch-writer.ts";
import { checkStorable, factOf, type RunFact } from "../domain/run-event.ts";
import { waitOrGiveUp } from "./give-up.ts";

/** Most events that wait for a write at once; a busy run makes a handful a second. */
const CONCURRENCY = 256;

export function consumeEvents(
  bus: Bus,
  sink: EventSinkName,
  writer: BatchWriter<RunFact>,
  logger: Logger,
): WorkConsumer {
  return consumeWork(bus, RunEventSchema, {
    stream: StreamName.events,
    durable: EventSinkDurable[sink],
    filter: subjects.event("*", "*"),
    concurrency: CONCURRENCY,
    handle: async (item) => {
      const fact = storableFactOf(item);
      if (fact !== undefined) await waitOrGiveUp(item, writer.add(fact), logger);
    },
    onError: (error, { subject, sequence }) =>
      logger.error("an event could not be stored", { sink, subject, sequence, error }),
  });
}

/** @throws {UndecodableMessageError} when the database cannot hold the event, or its subject names another run. */
function storableFactOf({ message, subject, sequence }: WorkItem<RunEvent>): RunFact | undefined {
  const fact = factOf(message, sequence);
  if (fact === undefined) return undefined;
  try {
    checkStorable(fact);
  } catch (error) {
    if (!(error instanceof TerminalError)) throw error;
    throw new UndecodableMessageError(subject, describeError(error), { cause: error });
  }
  const run = runOfEvent(subject);
  if (fact.kind === "refused" || fact.runId === run) return fact;
  throw new UndecodableMessageError(
    subject,
    `the event is of the run ${fact.runId}, but its subject names ${run}`,
  );
}
