/** Hands what happens in runs to a sink; an event is acknowledged after the sink has written it. */

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
import { storedOrGivenUp } from "./give-up.ts";

/** Events that wait for one write together; a busy run makes a handful a second. */
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
      if (fact !== undefined) await storedOrGivenUp(item, writer.add(fact), logger);
    },
    onError: (error, { subject, sequence }) =>
      logger.error("an event could not be stored", { sink, subject, sequence, error }),
  });
}

/** @throws {UndecodableMessageError} when no row could hold it, or it is one of another run than its subject says. */
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
  throw new UndecodableMessageError(subject, `an event on this subject is one of ${run}`);
}
