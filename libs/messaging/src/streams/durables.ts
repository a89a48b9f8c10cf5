/**
 * The shared consumers of the streams of work, by which the replicas of a service share it.
 *
 * Who makes the streams makes them, and makes anew one that is gone, or whose position lies beyond its stream
 * (stream-reset.ts): the services that take the work may not (bus-rights.ts).
 */

import { AckPolicy, type ConsumerInfo, JetStreamApiError } from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import type { Bus } from "../bus.ts";
import { subjects } from "../subjects.ts";
import { isBeyondStream } from "./stream-reset.ts";
import type { StreamName } from "./streams.ts";

/** The shared consumer of each sink that the tracer writes events to. Each has its own, so that a slow one holds up no other. */
export const EventSinkDurable = { database: "tracer-events" } as const;
export type EventSinkName = keyof typeof EventSinkDurable;

/** Shared consumers by name: replicas of a service share one, and others look at what waits there. */
export const DurableName = {
  runRequests: "trainer",
  jobs: "agent-rollout",
  finishedEpisodes: "judge",
  scoredEpisodes: "tracer-rollouts",
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
  /** A dead process's messages come again after this. */
  readonly ackWaitMs: number;
  /** Most messages in work over all replicas. */
  readonly maxAckPending: number;
}

/** Several times what a busy event loop may be late with its sign of life. */
export const DEFAULT_ACK_WAIT_MS = 10_000;
export const DEFAULT_MAX_ACK_PENDING = 20_000;
/** nats-server's server/errors.json: "consumer not found". */
const CONSUMER_NOT_FOUND = 10014;

const common = { ackWaitMs: DEFAULT_ACK_WAIT_MS, maxAckPending: DEFAULT_MAX_ACK_PENDING };
/** The services' own. */
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
  ...Object.values(EventSinkDurable).map(
    (durable): Durable => ({ ...common, stream: "EVENTS", durable, filter: subjects.event("*", "*") }),
  ),
];

/** Makes every shared consumer that is missing, and makes anew what can be of no use any more. */
export async function makeDurables(bus: Bus): Promise<void> {
  for (const each of DURABLES) await makeDurable(bus, each);
}

/** Makes one, or brings one that is there to these settings. */
export async function makeDurable(bus: Bus, durable: Durable): Promise<void> {
  const { stream } = durable;
  const config = {
    durable_name: durable.durable,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(durable.ackWaitMs),
    max_ack_pending: durable.maxAckPending,
    filter_subject: durable.filter,
  };
  const { delivered } = await bus.manager.consumers.add(stream, config);
  if (await isBeyondStream(bus, stream, delivered.stream_seq + 1)) {
    await bus.manager.consumers.delete(stream, durable.durable);
    await bus.manager.consumers.add(stream, config);
  }
}

/** What the server knows of a shared consumer; undefined where nobody has made it. */
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
