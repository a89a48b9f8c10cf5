/**
 * The streams and buckets: what they keep, for how long, and what happens when they are full.
 *
 * Every service calls {@link ensureTopology} when it starts. It creates what is missing and updates what has other settings,
 * so services may start in any order. If a server allows only some services to create streams, the others wait for them.
 * Nothing here needs a server newer than 2.9.
 *
 * Every stream has a size. A full stream of work (RUNS, JOBS, EPISODES) refuses new messages, and their publisher gets a
 * StreamFullError and waits, so nothing is lost. A full stream of reports (EVENTS, DEAD) drops its oldest messages. The server
 * reserves the sizes. If it has less space, only its own limit holds: three quarters of the space that was free at its start.
 */

import { deadline, delay, retry } from "@hone/core";
import {
  DiscardPolicy,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import type { Bus } from "../bus.ts";
import {
  PAYLOAD_STORES,
  PAYLOAD_WRITERS,
  payloadStoreBytes,
  payloadStoreOf,
  streamOfStore,
} from "../payloads/payload-stores.ts";
import { StreamsRole } from "../rights/streams-role.ts";
import { subjects } from "../subjects.ts";
import { DEATHS_BUCKET, DEATHS_TTL_MS } from "../work/poison-lane.ts";

/** The names of the streams. */
export const StreamName = {
  runs: "RUNS",
  jobs: "JOBS",
  episodes: "EPISODES",
  events: "EVENTS",
  dead: "DEAD",
} as const;
export type StreamName = (typeof StreamName)[keyof typeof StreamName];

/** The names of the key-value buckets; those for large payloads are in payload-stores.ts. */
export const BucketName = { runState: "RUN_STATE", replicas: "REPLICAS", rewards: "REWARDS" } as const;
export type BucketName = (typeof BucketName)[keyof typeof BucketName];

/** Largest number of jobs of one run that wait or run at the same time; further ones are refused and the trainer waits. */
const MAX_JOBS_PER_RUN = 50_000;

/** Messages that a restarted sender publishes again within this time are not stored twice. Every restart takes less. */
const DUPLICATE_WINDOW_MS = 10 * 60_000;
export const EVENTS_MAX_AGE_MS = 7 * 24 * 3_600_000;
/** Default limit for the disk space of episodes. The trainer purges what no reader needs long before it is reached. */
export const EPISODES_MAX_BYTES = 8 * 1024 ** 3;
/** A job has a kilobyte or two, so all jobs of ten runs fit; tasks larger than a message are in the object store. */
const JOBS_MAX_BYTES = 1024 ** 3;
/** Requests wait only for seconds, and a run file with its tokenizer has some hundred kilobytes. */
const RUNS_MAX_BYTES = 256 * 1024 ** 2;
/** Enough for a million events of a few hundred bytes, and the run files in events of accepted runs. */
const EVENTS_MAX_BYTES = 1024 ** 3;
/** Dead letters are read by people; even very many large ones take no more space than this. */
const DEAD_MAX_BYTES = 256 * 1024 ** 2;
/** A replica that did not report for this long is removed. */
export const REPLICA_TTL_MS = 30_000;

/** Error codes of nats-server (server/errors.json): "insufficient storage resources available". */
const NO_ROOM = 10047;
/** "stream name already in use with a different configuration". */
const OTHER_SETTINGS = 10058;

type Definition = Partial<StreamConfig> & { name: string; subjects: string[]; max_bytes: number };

const DEFINITIONS: readonly Definition[] = [
  {
    name: StreamName.runs,
    subjects: [subjects.runRequest()],
    retention: RetentionPolicy.Workqueue,
    discard: DiscardPolicy.New,
    max_msgs: 10_000,
    max_bytes: RUNS_MAX_BYTES,
    duplicate_window: nanos(DUPLICATE_WINDOW_MS),
  },
  {
    name: StreamName.jobs,
    subjects: [subjects.rolloutJob("*")],
    retention: RetentionPolicy.Workqueue,
    discard: DiscardPolicy.New,
    discard_new_per_subject: true,
    max_msgs_per_subject: MAX_JOBS_PER_RUN,
    max_bytes: JOBS_MAX_BYTES,
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
    max_bytes: EVENTS_MAX_BYTES,
    // A trainer that takes a run over publishes its last step again, minutes later if workers first load a large model.
    duplicate_window: nanos(DUPLICATE_WINDOW_MS),
  },
  {
    name: StreamName.dead,
    subjects: ["hone.v1.dead.*"],
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.Old,
    max_age: nanos(EVENTS_MAX_AGE_MS),
    max_msgs: 100_000,
    max_bytes: DEAD_MAX_BYTES,
  },
];

/** @returns all subjects that are stored: those of {@link StreamName}, of buckets and of the object store. */
export function storedSubjects(): string[] {
  return [...DEFINITIONS.flatMap(({ subjects: own }) => own), "$KV.>", "$O.>"];
}

/** Options of {@link ensureTopology}. */
export interface TopologyOptions {
  /** @default make */
  readonly role?: StreamsRole | undefined;
  /** Number of servers that hold a copy of each stream and bucket; at most as many as the bus has. @default 1 */
  readonly replicas?: number | undefined;
  /** Size of EPISODES. @default that of the existing stream, or else {@link EPISODES_MAX_BYTES} */
  readonly episodesMaxBytes?: number | undefined;
  /** Called when EPISODES did not get that size, as it holds too much or the server has too little space. */
  readonly onOldSize?: ((episodes: OldSize) => void) | undefined;
  /** Time limit in the role `await`. @default 180_000 */
  readonly awaitDeadlineMs?: number | undefined;
  readonly signal?: AbortSignal;
}

/** The size that a stream kept. */
export interface OldSize {
  /** -1 = only the server's own limit. */
  readonly maxBytes: number;
  /** Size of its messages. */
  readonly bytes: number;
}

/** As long as a service waits for its servers. */
const AWAIT_DEADLINE_MS = 180_000;
const AWAIT_LOOK_MS = 250;

/**
 * Creates the streams and buckets that are missing, and updates streams with other settings; or, in the role `await`,
 * returns once all exist.
 * @throws when the server does not answer.
 * @throws {DeadlineError} when no other service created them in time.
 */
export async function ensureTopology(bus: Bus, options: TopologyOptions = {}): Promise<void> {
  const { role = StreamsRole.make, awaitDeadlineMs = AWAIT_DEADLINE_MS, signal } = options;
  const waiting = signal === undefined ? {} : { signal };
  if (role === StreamsRole.await) {
    const what = "the streams that the trainer creates";
    return deadline(what, awaitDeadlineMs, (looking) => untilCreated(bus, looking), waiting);
  }
  const maxAttempts = 20;
  await retry(() => createAll(bus, options), { maxAttempts, isRetryable: () => true, ...waiting });
}

/** All streams of Hone, including those of the buckets. */
const ALL_STREAMS: readonly string[] = [
  ...DEFINITIONS.map(({ name }) => name),
  ...[...Object.values(BucketName), DEATHS_BUCKET].map((bucket) => `KV_${bucket}`),
  ...PAYLOAD_STORES.map(streamOfStore),
];

async function untilCreated(bus: Bus, signal: AbortSignal): Promise<void> {
  for (const name of ALL_STREAMS) {
    while (!(await isStreamThere(bus, name))) await delay(AWAIT_LOOK_MS, { signal });
  }
}

/** Whether a stream exists. A server that is busy or starting counts as one without it. */
async function isStreamThere(bus: Bus, name: string): Promise<boolean> {
  return bus.manager.streams.info(name).then(
    () => true,
    () => false,
  );
}

async function createAll(bus: Bus, options: TopologyOptions): Promise<void> {
  const { replicas = 1, episodesMaxBytes, onOldSize } = options;
  for (const definition of DEFINITIONS) {
    const isGiven = definition.name === StreamName.episodes && episodesMaxBytes !== undefined;
    const size = isGiven ? { max_bytes: episodesMaxBytes } : {};
    const mayResize = isGiven || definition.name !== StreamName.episodes;
    await addStream(bus, { ...definition, ...size, num_replicas: replicas }, mayResize);
  }
  if (episodesMaxBytes !== undefined) {
    const { config, state } = await bus.manager.streams.info(StreamName.episodes);
    if (config.max_bytes !== episodesMaxBytes)
      onOldSize?.({ maxBytes: config.max_bytes, bytes: state.bytes });
  }
  await bus.keyValue.create(BucketName.runState, { history: 1, replicas });
  await bus.keyValue.create(BucketName.replicas, { history: 1, ttl: REPLICA_TTL_MS, replicas });
  await bus.keyValue.create(BucketName.rewards, { history: 1, replicas });
  await bus.keyValue.create(DEATHS_BUCKET, { history: 1, ttl: DEATHS_TTL_MS, replicas });
  const { config } = await bus.manager.streams.info(StreamName.episodes);
  const episodesBytes = config.max_bytes > 0 ? config.max_bytes : EPISODES_MAX_BYTES;
  for (const writer of PAYLOAD_WRITERS) {
    const store = payloadStoreOf(writer);
    const bucket = {
      name: streamOfStore(store),
      subjects: [`$O.${store}.C.>`, `$O.${store}.M.>`],
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.New,
      allow_rollup_hdrs: true, // lets a writer drop a body that it could not store completely
      max_bytes: payloadStoreBytes(writer, episodesBytes),
      num_replicas: replicas,
    };
    await addStream(bus, bucket, true);
  }
}

/** Creates a stream with its size. If the server has too little space, it keeps its old size or has none. */
async function addStream(bus: Bus, definition: Definition, mayResize: boolean): Promise<void> {
  const config = { storage: StorageType.File, ...definition };
  try {
    await addOrUpdate(bus, config, mayResize);
  } catch (error) {
    if (!hasCode(error, NO_ROOM)) throw error;
    await addOrUpdate(bus, { ...config, max_bytes: -1 }, false);
  }
}

/**
 * A stream of work is made smaller only once its messages take no more than this share of the new size. nats-server 2.9 drops
 * the oldest messages that exceed a new size, even if the stream refuses new messages when it is full (2.14 keeps them), and
 * others may publish between the check and the update.
 */
const SHRINK_SHARE = 0.5;

/** Creates a stream. One that exists already, as in an older state folder, keeps its messages and gets these settings. */
async function addOrUpdate(bus: Bus, config: Definition, mayResize: boolean): Promise<void> {
  try {
    await bus.manager.streams.add(config);
  } catch (error) {
    if (!hasCode(error, OTHER_SETTINGS)) throw error;
    const { config: old, state } = await bus.manager.streams.info(config.name);
    const isSmaller = old.max_bytes <= 0 || config.max_bytes < old.max_bytes;
    const isTooMuch =
      config.discard === DiscardPolicy.New && isSmaller && state.bytes > SHRINK_SHARE * config.max_bytes;
    const maxBytes = mayResize && !isTooMuch ? config.max_bytes : old.max_bytes;
    await bus.manager.streams.update(config.name, { ...config, max_bytes: maxBytes });
  }
}

function hasCode(error: unknown, code: number): boolean {
  return error instanceof JetStreamApiError && error.code === code;
}
