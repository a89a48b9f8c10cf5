/**
 * Checks every few seconds which parts answer: the services, the bus, the database.
 *
 * W1: the silence of a part counts from its last answer, so its begin is right although it is noticed later.
 * W2: the silence of a part that has not answered yet counts from the begin of the watch. A part is reported as silent only
 *     after a grace time, so that a stack which is starting is not reported.
 */

import { pause } from "@hone/core";
import {
  askHealth,
  type Bus,
  BusUnavailableError,
  readDeadLetters,
  rolloutQueues,
  type ServiceHealth,
  ServiceName,
} from "@hone/messaging";
import type { Database } from "@hone/storage";
import type { Logger } from "@hone/telemetry";
import type { PartHealth, QueueDepth, StackHealth } from "../domain/stack-health.ts";

const CHECK_INTERVAL_MS = 3_000;
/** Longer than a check and a pause, so that one late answer is not reported as silence (W2). */
const GRACE_MS = 4_000;

export interface StackWatch {
  readonly health: StackHealth;
}

/** Watches until the signal aborts. */
export function watchStack(bus: Bus, database: Database, logger: Logger, signal: AbortSignal): StackWatch {
  const beganMs = Date.now();
  const heardMs = new Map<string, number>();
  let answered: ServiceHealth["replies"] = [];
  let queues: StackHealth["queues"] = null;
  let dead: StackHealth["dead"] = { count: 0, lastReason: "", lastSubject: "" };

  const checkBus = async (): Promise<void> => {
    try {
      const { replies } = await askHealth(bus);
      const now = Date.now();
      for (const part of ["bus", ...replies.map(({ service }) => service)]) heardMs.set(part, now);
      answered = replies;
      queues = await readQueues(bus);
      const { count, last } = await readDeadLetters(bus);
      dead = { count, lastReason: last?.reason ?? "", lastSubject: last?.subject ?? "" };
    } catch (error) {
      queues = null;
      if (!(error instanceof BusUnavailableError))
        logger.warn("the health of the services could not be checked", { error });
    }
  };
  const checkDatabase = async (): Promise<void> => {
    const { isUp } = await database.ping();
    if (isUp) heardMs.set("database", Date.now());
  };
  const watch = async (): Promise<void> => {
    while (!signal.aborted) {
      await Promise.all([checkBus(), checkDatabase()]);
      await pause(CHECK_INTERVAL_MS, signal);
    }
  };
  void watch();

  const partHealth = (part: string): PartHealth => {
    const since = heardMs.get(part) ?? beganMs;
    return { silentSinceMs: Date.now() - since > CHECK_INTERVAL_MS + GRACE_MS ? since : null };
  };
  return {
    get health() {
      const bus = partHealth("bus");
      return {
        bus,
        database: partHealth("database"),
        services: Object.values(ServiceName).map((service) => {
          const own = answered.filter((reply) => reply.service === service);
          return {
            service,
            // While the bus does not answer, nothing is known about the services.
            ...(bus.silentSinceMs === null ? partHealth(service) : { silentSinceMs: null }),
            instances: own.length,
            reasons: own.flatMap(({ reasons }) => reasons),
          };
        }),
        queues,
        dead,
      };
    },
  };
}

/** @throws {BusUnavailableError} when the bus does not answer. */
async function readQueues(bus: Bus): Promise<StackHealth["queues"]> {
  const { jobs, episodes } = await rolloutQueues(bus);
  return { jobs: depthOf(jobs), episodes: depthOf(episodes) };
}

function depthOf({ pending, inWork }: QueueDepth): QueueDepth {
  return { pending, inWork };
}
