/**
 * Looks every few seconds who answers: the services, the bus, the database.
 *
 * W1: a part is silent since its last answer, so the time since when is right although it is noticed later.
 * W2: what was not heard of yet is silent since the watch began, and is only called so after a grace time: a stack
 *     that starts is not a stack that hangs.
 */

import { pause } from "@hone/core";
import {
  askHealth,
  type Bus,
  BusUnavailableError,
  readDeadLetters,
  type ServiceHealth,
  ServiceName,
} from "@hone/messaging";
import type { Database } from "@hone/storage";
import type { Logger } from "@hone/telemetry";
import type { PartHealth, StackHealth } from "../domain/stack-health.ts";

/** With the two seconds that an answer may take, silence is told within six. */
const LOOK_EVERY_MS = 3_000;
/** Longer than a look and a pause: one answer that comes late is no silence (W2). */
const GRACE_MS = 4_000;

export interface StackWatch {
  readonly health: StackHealth;
}

/** Watches until the signal aborts. */
export function watchStack(bus: Bus, database: Database, logger: Logger, signal: AbortSignal): StackWatch {
  const beganMs = Date.now();
  const heardMs = new Map<string, number>();
  let answered: ServiceHealth["replies"] = [];
  let dead: StackHealth["dead"] = { count: 0, lastReason: "", lastSubject: "" };

  const lookAtBus = async (): Promise<void> => {
    try {
      const { replies } = await askHealth(bus);
      const now = Date.now();
      for (const part of ["bus", ...replies.map(({ service }) => service)]) heardMs.set(part, now);
      answered = replies;
      const { count, last } = await readDeadLetters(bus);
      dead = { count, lastReason: last?.reason ?? "", lastSubject: last?.subject ?? "" };
    } catch (error) {
      if (!(error instanceof BusUnavailableError)) logger.warn("cannot look who answers", { error });
    }
  };
  const lookAtDatabase = async (): Promise<void> => {
    const { isUp } = await database.ping();
    if (isUp) heardMs.set("database", Date.now());
  };
  const watch = async (): Promise<void> => {
    while (!signal.aborted) {
      await Promise.all([lookAtBus(), lookAtDatabase()]);
      await pause(LOOK_EVERY_MS, signal);
    }
  };
  void watch();

  const partHealth = (part: string): PartHealth => {
    const since = heardMs.get(part) ?? beganMs;
    return { silentSinceMs: Date.now() - since > LOOK_EVERY_MS + GRACE_MS ? since : null };
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
            // Nobody can answer over a bus that does not.
            ...(bus.silentSinceMs === null ? partHealth(service) : { silentSinceMs: null }),
            instances: own.length,
            reasons: own.flatMap(({ reasons }) => reasons),
          };
        }),
        dead,
      };
    },
  };
}
