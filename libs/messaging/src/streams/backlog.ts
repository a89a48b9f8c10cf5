/** Tells how many messages wait in a stream and at its consumers. */

import type { Bus } from "../bus.ts";
import { translateBusError } from "../errors.ts";
import { bytesOfLargeEpisodes } from "../payloads/payload-janitor.ts";
import { lastKeyOf } from "../subjects.ts";
import { DurableName, durableInfo } from "./durables.ts";
import { StreamName } from "./streams.ts";

/** The state of a shared consumer. */
export interface ConsumerBacklog {
  /** Messages that were not delivered yet. */
  readonly pending: number;
  /** Messages that were delivered and are not acknowledged yet. */
  readonly inWork: number;
  /** The messages in work that were delivered more than once. */
  readonly redelivered: number;
}

/**
 * @returns the messages that wait at a consumer; none if the consumer does not exist yet.
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

/**
 * @returns what waits for those who play and score rollouts, of all runs: jobs for agent-rollout, and finished episodes for the judge.
 * @throws {BusUnavailableError} when the server does not answer.
 */
export async function rolloutQueues(
  bus: Bus,
): Promise<{ readonly jobs: ConsumerBacklog; readonly episodes: ConsumerBacklog }> {
  const [jobs, episodes] = await Promise.all([
    consumerBacklog(bus, StreamName.jobs, DurableName.jobs),
    consumerBacklog(bus, StreamName.episodes, DurableName.finishedEpisodes),
  ]);
  return { jobs, episodes };
}

/** @returns how many messages of a subject a stream holds. @throws {BusUnavailableError} when the server does not answer. */
export async function subjectCount(bus: Bus, stream: StreamName, subject: string): Promise<number> {
  try {
    const { state } = await bus.manager.streams.info(stream, { subjects_filter: subject });
    return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
  } catch (error) {
    throw translateBusError(error, "count messages", subject);
  }
}

/** @returns the runs that have a message in a stream of work. @throws {BusUnavailableError} when the server does not answer. */
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

/** How full a stream is, and which runs have messages in it. */
export interface StreamRoom {
  readonly bytes: number;
  /** Its size limit; undefined = only that of the server. */
  readonly maxBytes: number | undefined;
  /** Whether the next message may not fit, so that senders wait. For EPISODES this includes the buckets of large episodes. */
  readonly isFull: boolean;
  /** Position of the first message in it. */
  readonly firstSequence: number;
  /** Runs that have a message in it. */
  readonly runs: readonly string[];
}

/** A stream counts as full when less than this share of its size is free... */
const FULL_SHARE = 0.01;
/** ...or, if it is small, when fewer messages than this of the average size fit. */
const FULL_MESSAGES = 4;

/** @returns how full a stream of work is. @throws {BusUnavailableError} when the server does not answer. */
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
