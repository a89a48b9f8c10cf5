/**
 * Streams and buckets: what is kept, how long, and what happens when it is full.
 *
 * Every service calls {@link ensureTopology} when it starts; creating what exists already does nothing, so the order
 * in which services come up does not matter. Nothing here needs a server newer than 2.9.
 */

import { retry } from "@hone/core";
import {
  DiscardPolicy,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import type { Bus } from "./bus.ts";
import { DEATHS_BUCKET, DEATHS_TTL_MS } from "./poison-lane.ts";
import { subjects } from "./subjects.ts";

/** Streams by name. */
export const StreamName = {
  runs: "RUNS",
  jobs: "JOBS",
  episodes: "EPISODES",
  events: "EVENTS",
  dead: "DEAD",
} as const;
export type StreamName = (typeof StreamName)[keyof typeof StreamName];

/** Shared consumers by name: replicas of a service share one, and others look at what waits there. */
export const DurableName = {
  runRequests: "trainer",
  jobs: "agent-rollout",
  finishedEpisodes: "judge",
  scoredEpisodes: "tracer-rollouts",
  events: "tracer-events",
} as const;
export type DurableName = (typeof DurableName)[keyof typeof DurableName];

/** Key-value buckets and the object store by name. */
export const BucketName = { runState: "RUN_STATE", replicas: "REPLICAS" } as const;
export type BucketName = (typeof BucketName)[keyof typeof BucketName];
export const PAYLOAD_STORE = "PAYLOADS";

/** Most jobs of one run that wait or run at once; one more is refused and the trainer waits. */
const MAX_JOBS_PER_RUN = 50_000;

/** A restarted sender that publishes again within this time changes nothing. Longer than any restart takes. */
const DUPLICATE_WINDOW_MS = 10 * 60_000;
const EVENTS_MAX_AGE_MS = 7 * 24 * 3_600_000;
/**
 * Bounds the disk that episodes may take; the trainer purges what no reader needs long before. The server sets so much
 * aside; where it has less, its own bound, three quarters of what was free when it started, is the only one.
 */
const EPISODES_MAX_BYTES = 8 * 1024 ** 3;
/** A replica that was not heard of for this long is forgotten. */
export const REPLICA_TTL_MS = 30_000;

/** "insufficient storage resources available", and "stream name already in use" by one without a bound. */
const SMALL_SERVER_CODES: ReadonlySet<number> = new Set([10047, 10058]);

type Definition = Partial<StreamConfig> & { name: StreamName; subjects: string[] };

const DEFINITIONS: readonly Definition[] = [
  {
    name: StreamName.runs,
    subjects: [subjects.runRequest()],
    retention: RetentionPolicy.Workqueue,
    discard: DiscardPolicy.New,
    max_msgs: 10_000,
    duplicate_window: nanos(DUPLICATE_WINDOW_MS),
  },
  {
    name: StreamName.jobs,
    subjects: [subjects.rolloutJob("*")],
    retention: RetentionPolicy.Workqueue,
    discard: DiscardPolicy.New,
    discard_new_per_subject: true,
    max_msgs_per_subject: MAX_JOBS_PER_RUN,
    duplicate_window: nanos(DUPLICATE_WINDOW_MS),
  },
  {
    name: StreamName.episodes,
    subjects: [subjects.rolloutFinished("*"), subjects.rolloutScored("*")],
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.New,
    max_bytes: EPISODES_MAX_BYTES,
    duplicate_window: nanos(DUPLICATE_WINDOW_MS),
  },
  {
    name: StreamName.events,
    subjects: [subjects.event("*", "*")],
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.Old,
    max_age: nanos(EVENTS_MAX_AGE_MS),
    max_msgs: 1_000_000,
  },
  {
    name: StreamName.dead,
    subjects: ["hone.v1.dead.*"],
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.Old,
    max_age: nanos(EVENTS_MAX_AGE_MS),
    max_msgs: 100_000,
  },
];

/**
 * Creates the streams and buckets that are missing.
 * @throws when the server does not answer within `deadlineMs`.
 */
export async function ensureTopology(bus: Bus, options: { signal?: AbortSignal } = {}): Promise<void> {
  const maxAttempts = 20;
  await retry(() => createAll(bus), { maxAttempts, isRetryable: () => true, ...options });
}

async function createAll(bus: Bus): Promise<void> {
  for (const definition of DEFINITIONS) {
    await addStream(bus, definition);
  }
  await bus.keyValue.create(BucketName.runState, { history: 1 });
  await bus.keyValue.create(BucketName.replicas, { history: 1, ttl: REPLICA_TTL_MS });
  await bus.keyValue.create(DEATHS_BUCKET, { history: 1, ttl: DEATHS_TTL_MS });
  await bus.objects.create(PAYLOAD_STORE, {});
}

async function addStream(bus: Bus, definition: Definition): Promise<void> {
  const config = { storage: StorageType.File, num_replicas: 1, ...definition };
  try {
    await bus.manager.streams.add(config);
  } catch (error) {
    const isSmall = error instanceof JetStreamApiError && SMALL_SERVER_CODES.has(error.code);
    if (!isSmall || definition.max_bytes === undefined) throw error;
    await bus.manager.streams.add({ ...config, max_bytes: -1 });
  }
}
