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

/** Requests are rare and cheap; several at once only so that one slow folder does not hold up the rest. */
const CONCURRENCY = 4;
/** An admission that no service holds up takes a tenth of this. */
const ADMISSION_PATIENCE_MS = 2_000;
const ADMISSION_LOOK_MS = 50;

export interface RunRequestsDeps {
  readonly registry: RunRegistry;
  readonly events: EventPublisher;
  /** Paths in run files resolve below it. */
  readonly filesFolder: string;
  /** Told that a run was inserted. */
  readonly onRun: () => void;
  readonly logger: Logger;
}

/** Starts to take requests: a run is inserted, then its request acknowledged; a faulty one is answered as refused. */
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
 * Inserts a run; where one of its name is being admitted, when that is decided or has taken long. A refusal is told
 * before its run is gone, and who mends the file and sends it again at once must not be told of that run.
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

/** Two runs of a name at once are nearly always one that was sent twice. */
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
    // no protobuf: the run file as it is
  }
  return textFromBytes(body, "the run file");
}
