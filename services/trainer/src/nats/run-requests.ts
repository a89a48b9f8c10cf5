/** Takes run requests from the stream RUNS. */

import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { textFromBytes } from "@hone/config";
import { delay } from "@hone/core";
import {
  type Bus,
  consumeBytes,
  DurableName,
  StreamName,
  subjects,
  type WorkConsumer,
  type WorkItem,
} from "@hone/messaging";
import { RunRequestSchema } from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import { readRequest } from "../domain/admission/read-request.ts";
import type { Problem } from "../domain/report/run-event.ts";
import type { Insertion, NewRun, RunRegistry } from "../domain/run/run-registry.ts";
import type { EventPublisher } from "./event-publisher.ts";

/** Requests are rare and cheap; several are handled at once so that a slow folder does not delay the others. */
const CONCURRENCY = 4;
/** An admission in which no service is slow takes a tenth of this. */
const ADMISSION_PATIENCE_MS = 2_000;
const ADMISSION_LOOK_MS = 50;

export interface RunRequestsDeps {
  readonly registry: RunRegistry;
  readonly events: EventPublisher;
  /** Paths in run files resolve below it. */
  readonly filesFolder: string;
  /** Called after a run was inserted. */
  readonly onRun: () => void;
  readonly logger: Logger;
}

/** Starts to handle requests: a run is inserted, then its request acknowledged; a faulty request is refused by an event. */
export function consumeRunRequests(bus: Bus, deps: RunRequestsDeps): WorkConsumer {
  return consumeBytes(bus, {
    stream: StreamName.runs,
    durable: DurableName.runRequests,
    filter: subjects.runRequest(),
    concurrency: CONCURRENCY,
    handle: (item) => takeRequest(item, deps),
    putAside: async ({ sequence }, deaths) => {
      const message = `the run request is given up: ${deaths} trainers died while each handled nothing else`;
      deps.logger.error("a run request is given up", { sequence, deaths });
      await deps.events.refused(sequence, [
        { key: "", valueJson: "", allowed: "a readable run file", message },
      ]);
    },
    onError: (error, where) => deps.logger.error("a run request could not be taken", { ...where, error }),
  });
}

async function takeRequest(item: WorkItem<Uint8Array>, deps: RunRequestsDeps): Promise<void> {
  const { registry, events, filesFolder, onRun, logger } = deps;
  const read = await readRequest(() => runFileOf(item.message), item.sequence, filesFolder);
  if (read.kind === "refused") {
    logger.info("run request refused", { sequence: item.sequence, problems: read.problems });
    await events.refused(item.sequence, read.problems);
    return;
  }
  const inserted = await insertOnceDecided(registry, read.run);
  if (inserted.kind === "under_way") {
    await events.refused(item.sequence, [nameTaken(read.run.name, inserted.runId)]);
    return;
  }
  if (inserted.kind === "known" && item.deliveries === 1) {
    const message = `the database already has a request with the sequence ${item.sequence}; was the bus reset and the database kept?`;
    await events.refused(item.sequence, [{ key: "", valueJson: "", allowed: "a new sequence", message }]);
    return;
  }
  logger.info("run request taken", { runId: read.run.runId });
  onRun();
}

/**
 * Inserts a run. Where another run of its name is being admitted, it waits until that is decided or has taken too long: a
 * refusal is published before its run is removed, and a corrected file that is sent at once must not collide with that run.
 */
async function insertOnceDecided(registry: RunRegistry, run: NewRun): Promise<Insertion> {
  const until = performance.now() + ADMISSION_PATIENCE_MS;
  for (;;) {
    const inserted = await registry.insert(run);
    const isUndecided = inserted.kind === "under_way" && !inserted.isAdmitted;
    if (!isUndecided || performance.now() > until) return inserted;
    await delay(ADMISSION_LOOK_MS);
  }
}

/** Refuses a second unfinished run of a name, which nearly always is the same run sent twice. */
function nameTaken(name: string, runId: string): Problem {
  const allowed = `a name of which no run is under way: cancel ${runId} by a request on ${subjects.runControl("cancel", runId)}, wait for its end, or choose another name`;
  return {
    key: "name",
    valueJson: JSON.stringify(name),
    allowed,
    message: `a run named "${name}" is under way, ${runId}; give ${allowed}`,
  };
}

/**
 * Text of the run file in a request: a RunRequest's, or the body itself. Text is taken for a RunRequest only where its
 * bytes are exactly what one with a run file encodes to.
 * @throws {ConfigError} when it is neither.
 */
export function runFileOf(body: Uint8Array): string {
  try {
    const message = fromBinary(RunRequestSchema, body);
    const isExact = Buffer.compare(toBinary(RunRequestSchema, message), body) === 0;
    if (isExact && message.$unknown === undefined && message.runFile !== "") return message.runFile;
  } catch {
    // The body is not a protobuf message, so it is the run file itself.
  }
  return textFromBytes(body, "the run file");
}
