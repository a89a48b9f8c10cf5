/** Hands the events of runs to a sink; an event is acknowledged after the sink has written it. */

import { describeError, TerminalError } from "@hone/core";
import {
  type Bus,
  consumeWork,
  durableOfSink,
  type EventSinkName,
  isSinkInOrder,
  runOfEvent,
  UndecodableMessageError,
  type WorkConsumer,
  type WorkItem,
} from "@hone/messaging";
import { type RunEvent, RunEventSchema } from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import { checkStorable, factOf, type RunFact } from "../domain/run-event.ts";
import { waitOrGiveUp } from "./give-up.ts";

/** Most events that wait for a write of the database at once; a busy run makes a handful a second. */
const CONCURRENCY = 256;
/** A sink that is away fails once a second; the log says so once in this time, with the number of tries. */
const REPORT_INTERVAL_MS = 30_000;

/** @param write resolves when the sink has the fact; a failed write is tried again. */
export function consumeEvents(
  bus: Bus,
  sink: EventSinkName,
  write: (fact: RunFact) => Promise<void>,
  logger: Logger,
): WorkConsumer {
  const report = errorReport(logger);
  return consumeWork(bus, RunEventSchema, {
    ...durableOfSink(sink),
    concurrency: isSinkInOrder(sink) ? 1 : CONCURRENCY,
    handle: async (item) => {
      const fact = storableFactOf(item);
      if (fact !== undefined) await waitOrGiveUp(item, write(fact), logger);
    },
    onError: (error, { subject, sequence }) => report(error, { sink, subject, sequence }),
  });
}

function errorReport(logger: Logger) {
  let reportedAt = Number.NEGATIVE_INFINITY;
  let unreported = 0;
  return (error: unknown, where: { sink: string; subject: string; sequence: number }): void => {
    unreported++;
    const now = performance.now();
    if (now - reportedAt < REPORT_INTERVAL_MS) return;
    logger.error("an event could not be stored", { ...where, failures: unreported, error });
    reportedAt = now;
    unreported = 0;
  };
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
