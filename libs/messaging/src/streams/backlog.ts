/** How much work waits in a stream, and with whom. */

import type { Bus } from "../bus.ts";
import { translateBusError } from "../errors.ts";
import { bytesOfLargeEpisodes } from "../payloads/payload-janitor.ts";
import { lastKeyOf } from "../subjects.ts";
import { type DurableName, durableInfo } from "./durables.ts";
import { StreamName } from "./streams.ts";

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

/** How much a stream holds, and of whom. */
export interface StreamRoom {
  readonly bytes: number;
  /** Its size; undefined = none but the server's own. */
  readonly maxBytes: number | undefined;
  /** Whether the next message may be one too many, so that senders wait; of EPISODES, also where a bucket of large ones is full. */
  readonly isFull: boolean;
  /** Position of the first message that is there. */
  readonly firstSequence: number;
  /** Runs of which it holds a message. */
  readonly runs: readonly string[];
}

/** Less than this share of its size is as good as nothing where the size is large. */
const FULL_SHARE = 0.01;
/** And as much as these messages of the usual size, where it is small. */
const FULL_MESSAGES = 4;

/** Looks how full a stream of work is. @throws {BusUnavailableError} when the server does not answer. */
export async function streamRoom(
  bus: Bus,
  stream: typeof StreamName.jobs | typeof StreamName.episodes,
): Promise<StreamRoom> {
  try {
    const isFullBucket =
      stream === StreamName.episodes && (await bytesOfLargeEpisodes(bus)).fullest >= 1 - FULL_SHARE;
    const { state, config } = await bus.manager.streams.info(stream, { subjects_filter: ">" });
    const { bytes, messages, first_seq: firstSequence } = state;
    const maxBytes = config.max_bytes > 0 ? config.max_bytes : undefined;
    const usualBytes = messages === 0 ? 0 : bytes / messages;
    const least = Math.max(FULL_SHARE * (maxBytes ?? 0), FULL_MESSAGES * usualBytes);
    return {
      bytes,
      maxBytes,
      isFull: isFullBucket || (maxBytes !== undefined && messages > 0 && maxBytes - bytes <= least),
      firstSequence,
      runs: [...new Set(Object.keys(state.subjects ?? {}).map(lastKeyOf))],
    };
  } catch (error) {
    throw translateBusError(error, "look at a stream", stream);
  }
}
