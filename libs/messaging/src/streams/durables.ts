/**
 * The shared consumers of the streams, through which the replicas of a service share its work.
 *
 * The service that creates the streams creates them too, and creates again one that is gone or whose position lies beyond its
 * stream (stream-reset.ts). The services that do the work may not create them (bus-rights.ts).
 */

import { pause } from "@hone/core";
import { AckPolicy, type ConsumerInfo, JetStreamApiError } from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import type { Bus } from "../bus.ts";
import { subjects } from "../subjects.ts";
import { isBeyondStream } from "./stream-reset.ts";
import type { StreamName } from "./streams.ts";

/** The shared consumer of each sink that the tracer writes events to. Each sink has its own, so that a slow one delays no other. */
export const EventSinkDurable = {
  database: "tracer-events",
  tensorboard: "tracer-events-tensorboard",
  mlflow: "tracer-events-mlflow",
  otlpMetrics: "tracer-events-otlp-metrics",
} as const;
export type EventSinkName = keyof typeof EventSinkDurable;

/**
 * Whether a sink gets its events one at a time, in the order of the stream, whichever replica takes them and whatever fails: then
 * a curve has no step that goes back. The database takes many at once, in any order.
 */
export function isSinkInOrder(sink: EventSinkName): boolean {
  return sink !== "database";
}

/** The names of the shared consumers; other services use them to see what waits there. */
export const DurableName = {
  runRequests: "trainer",
  jobs: "agent-rollout",
  finishedEpisodes: "judge",
  scoredEpisodes: "tracer-rollouts",
  shownEpisodes: "tracer-episodes",
  events: EventSinkDurable.database,
} as const;
export type DurableName =
  | (typeof DurableName)[keyof typeof DurableName]
  | (typeof EventSinkDurable)[EventSinkName];

/** A shared consumer. */
export interface Durable {
  readonly stream: StreamName;
  readonly durable: string;
  readonly filter: string;
  /** Whether its messages are acknowledged; otherwise each is delivered once (kept-episodes.ts). @default true */
  readonly isAcknowledged?: boolean;
  /** The messages of a dead process are delivered again after this time. */
  readonly ackWaitMs: number;
  /** Largest number of messages in work over all replicas. */
  readonly maxAckPending: number;
}

/** Several times as long as a busy event loop may delay its reports of progress. */
export const DEFAULT_ACK_WAIT_MS = 10_000;
export const DEFAULT_MAX_ACK_PENDING = 20_000;
const LOOK_AGAIN_MS = 250;
/** nats-server's server/errors.json: "consumer not found". */
const CONSUMER_NOT_FOUND = 10014;

const common = { ackWaitMs: DEFAULT_ACK_WAIT_MS, maxAckPending: DEFAULT_MAX_ACK_PENDING };
/** The consumers of the services. */
const DURABLES: readonly Durable[] = [
  { ...common, stream: "RUNS", durable: DurableName.runRequests, filter: subjects.runRequest() },
  { ...common, stream: "JOBS", durable: DurableName.jobs, filter: subjects.rolloutJob("*") },
  {
    ...common,
    stream: "EPISODES",
    durable: DurableName.finishedEpisodes,
    filter: subjects.rolloutFinished("*"),
  },
  { ...common, stream: "EPISODES", durable: DurableName.scoredEpisodes, filter: subjects.rolloutScored("*") },
  {
    ...common,
    stream: "EPISODES",
    durable: DurableName.shownEpisodes,
    filter: subjects.rolloutFinished("*"),
    isAcknowledged: false,
  },
  ...(Object.keys(EventSinkDurable) as EventSinkName[]).map(durableOfSink),
];

/** The consumer of a sink. */
export function durableOfSink(sink: EventSinkName): Durable {
  return {
    stream: "EVENTS",
    durable: EventSinkDurable[sink],
    filter: subjects.event("*", "*"),
    ackWaitMs: DEFAULT_ACK_WAIT_MS,
    maxAckPending: isSinkInOrder(sink) ? 1 : DEFAULT_MAX_ACK_PENDING,
  };
}

/** Creates every shared consumer that is missing, and creates again those that cannot deliver any more. */
export async function makeDurables(bus: Bus): Promise<void> {
  for (const each of DURABLES) await makeDurable(bus, each);
}

/** Creates a shared consumer, or updates the settings of an existing one. */
export async function makeDurable(bus: Bus, durable: Durable): Promise<void> {
  const { stream, isAcknowledged = true } = durable;
  const config = {
    durable_name: durable.durable,
    filter_subject: durable.filter,
    ...(isAcknowledged
      ? {
          ack_policy: AckPolicy.Explicit,
          ack_wait: nanos(durable.ackWaitMs),
          max_ack_pending: durable.maxAckPending,
        }
      : { ack_policy: AckPolicy.None }),
  };
  const { delivered } = await bus.manager.consumers.add(stream, config);
  if (await isBeyondStream(bus, stream, delivered.stream_seq + 1)) {
    await bus.manager.consumers.delete(stream, durable.durable);
    await bus.manager.consumers.add(stream, config);
  }
}

/** Waits until another service has created a shared consumer, or the signal aborts. */
export async function untilDurable(
  bus: Bus,
  stream: StreamName,
  durable: string,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted && (await durableInfo(bus, stream, durable)) === undefined) {
    await pause(LOOK_AGAIN_MS, signal);
  }
}

/** @returns the server's information about a shared consumer; undefined if it does not exist. */
export async function durableInfo(
  bus: Bus,
  stream: StreamName,
  durable: string,
): Promise<ConsumerInfo | undefined> {
  try {
    return await bus.manager.consumers.info(stream, durable);
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === CONSUMER_NOT_FOUND) return undefined;
    throw error;
  }
}
