/** Stores what happens in runs; an event is acknowledged after it is written. */

import { type Bus, consumeWork, DurableName, StreamName, subjects, type WorkConsumer } from "@hone/messaging";
import { RunEventSchema } from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import type { BatchWriter } from "../domain/batch-writer.ts";
import { factOf, type RunFact } from "../domain/run-event.ts";
import { storedOrGivenUp } from "./give-up.ts";

/** Events that wait for one write together; a busy run makes a handful a second. */
const CONCURRENCY = 256;

export function consumeEvents(bus: Bus, writer: BatchWriter<RunFact>, logger: Logger): WorkConsumer {
  return consumeWork(bus, RunEventSchema, {
    stream: StreamName.events,
    durable: DurableName.events,
    filter: subjects.event("*", "*"),
    concurrency: CONCURRENCY,
    handle: async (item) => {
      const fact = factOf(item.message, item.sequence);
      if (fact !== undefined) await storedOrGivenUp(item, writer.add(fact), logger);
    },
    onError: (error, { subject, sequence }) =>
      logger.error("an event could not be stored", { subject, sequence, error }),
  });
}
