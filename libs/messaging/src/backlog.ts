/** How much work waits in a stream, and with whom. */

import type { Bus } from "./bus.ts";
import { translateBusError } from "./errors.ts";
import type { StreamName } from "./streams.ts";

/** What the server knows of a shared consumer. */
export interface ConsumerBacklog {
  /** Messages that nobody has taken. */
  readonly pending: number;
  /** Messages that were taken and are not acknowledged. */
  readonly inWork: number;
  /** Of those in work, how many were delivered more than once. */
  readonly redelivered: number;
}

/** @throws {BusUnavailableError} when the server does not answer, or has no such consumer. */
export async function consumerBacklog(
  bus: Bus,
  stream: StreamName,
  durable: string,
): Promise<ConsumerBacklog> {
  try {
    const info = await bus.manager.consumers.info(stream, durable);
    return {
      pending: info.num_pending,
      inWork: info.num_ack_pending,
      redelivered: info.num_redelivered,
    };
  } catch (error) {
    throw translateBusError(error, `look at the consumer ${durable}`, stream);
  }
}

/** How many messages of a subject a stream holds. @throws {BusUnavailableError} when the server does not answer. */
export async function subjectCount(bus: Bus, stream: StreamName, subject: string): Promise<number> {
  try {
    const { state } = await bus.manager.streams.info(stream, { subjects_filter: subject });
    return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
  } catch (error) {
    throw translateBusError(error, "count messages", subject);
  }
}
