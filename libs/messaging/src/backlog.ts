/** How much work waits in a stream, and with whom. */

import type { Bus } from "./bus.ts";
import { type DurableName, durableInfo } from "./durables.ts";
import { translateBusError } from "./errors.ts";
import type { StreamName } from "./streams.ts";
import { lastKeyOf } from "./subjects.ts";

/** What the server knows of a shared consumer. */
export interface ConsumerBacklog {
  /** Messages that nobody has taken. */
  readonly pending: number;
  /** Messages that were taken and are not acknowledged. */
  readonly inWork: number;
  /** Of those in work, how many were delivered more than once. */
  readonly redelivered: number;
}

/**
 * What waits with a consumer; with one that nobody has made yet, nothing.
 * @throws {BusUnavailableError} when the server does not answer.
 */
export async function consumerBacklog(
  bus: Bus,
  stream: StreamName,
  durable: DurableName,
): Promise<ConsumerBacklog> {
  try {
    const info = await durableInfo(bus, stream, durable);
    return {
      pending: info?.num_pending ?? 0,
      inWork: info?.num_ack_pending ?? 0,
      redelivered: info?.num_redelivered ?? 0,
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

/** Runs of which a stream of work holds a message. @throws {BusUnavailableError} when the server does not answer. */
export async function runsIn(
  bus: Bus,
  stream: typeof StreamName.jobs | typeof StreamName.episodes,
): Promise<string[]> {
  try {
    const { state } = await bus.manager.streams.info(stream, { subjects_filter: ">" });
    return [...new Set(Object.keys(state.subjects ?? {}).map(lastKeyOf))];
  } catch (error) {
    throw translateBusError(error, "look for runs", stream);
  }
}

/** Of its largest size: above it, the next message of ordinary size may be one too many. */
const FULL_SHARE = 0.99;

/** Whether a stream is at its limit of bytes, so that senders wait. @throws {BusUnavailableError} when the server does not answer. */
export async function isStreamFull(bus: Bus, stream: StreamName): Promise<boolean> {
  try {
    const { state, config } = await bus.manager.streams.info(stream);
    return config.max_bytes > 0 && state.bytes >= FULL_SHARE * config.max_bytes;
  } catch (error) {
    throw translateBusError(error, "look at a stream", stream);
  }
}
