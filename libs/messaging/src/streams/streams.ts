/**
 * Streams and buckets: what is kept, how long, and what happens when it is full.
 *
 * Every service calls {@link ensureTopology} when it starts; what exists already is brought to these settings, or left as
 * it is where it has them, so the order in which services come up does not matter. Where a server allows only some
 * services to make streams, the others wait for them. Nothing here needs a server newer than 2.9.
 *
 * Every stream has a size. A full one of work (RUNS, JOBS, EPISODES) refuses what is new, and its publisher gets a
 * StreamFullError: nothing is lost, somebody waits. A full one of reports (EVENTS, DEAD) drops its oldest. The server
 * sets the sizes aside; where it has less, its own bound, three quarters of what was free when it started, is the only one.
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

/** Streams by name. */
export const StreamName = {
  runs: "RUNS",
  jobs: "JOBS",
  episodes: "EPISODES",
  events: "EVENTS",
  dead: "DEAD",
} as const;
export type StreamName = (typeof StreamName)[keyof typeof StreamName];

/** Key-value buckets by name; those of large payloads are in payload-stores.ts. */
export const BucketName = { runState: "RUN_STATE", replicas: "REPLICAS" } as const;
export type BucketName = (typeof BucketName)[keyof typeof BucketName];

/** Most jobs of one run that wait or run at once; one more is refused and the trainer waits. */
const MAX_JOBS_PER_RUN = 50_000;

/** A restarted sender that publishes again within this time changes nothing. Longer than any restart takes. */
const DUPLICATE_WINDOW_MS = 10 * 60_000;
export const EVENTS_MAX_AGE_MS = 7 * 24 * 3_600_000;
/** Bounds the disk that episodes may take where nobody says another size; the trainer purges what no reader needs long before. */
export const EPISODES_MAX_BYTES = 8 * 1024 ** 3;
/** A job has a kilobyte or two, so every job of ten runs fits; tasks larger than a message lie in the object store. */
const JOBS_MAX_BYTES = 1024 ** 3;
/** Requests wait for seconds, and a run file has some hundred kilobytes with its tokenizer. */
const RUNS_MAX_BYTES = 256 * 1024 ** 2;
/** A million events of a few hundred bytes, and the run files of those that were accepted. */
const EVENTS_MAX_BYTES = 1024 ** 3;
/** Dead letters are looked at by people; a flood of large ones takes no more than this. */
const DEAD_MAX_BYTES = 256 * 1024 ** 2;
/** A replica that was not heard of for this long is forgotten. */
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
    // Who takes a run over tells its last step again: minutes later, where workers load a large model first.
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

/** Subjects of what streams keep: those of {@link StreamName}, of buckets and of the object store. */
export function storedSubjects(): string[] {
  return [...DEFINITIONS.flatMap(({ subjects: own }) => own), "$KV.>", "$O.>"];
}

/** Options of {@link ensureTopology}. */
export interface TopologyOptions {
  /** @default make */
  readonly role?: StreamsRole | undefined;
  /** Servers that hold a copy of each stream and bucket; at most as many as the bus has. @default 1 */
  readonly replicas?: number | undefined;
  /** Size of EPISODES. @default that of a stream that is there, or else {@link EPISODES_MAX_BYTES} */
  readonly episodesMaxBytes?: number | undefined;
  /** Told, for the log, that EPISODES did not get that size: it holds too much, or the server has not so much room. */
  readonly onOldSize?: ((episodes: OldSize) => void) | undefined;
  /** How long `await` waits. @default 180_000 */
  readonly awaitDeadlineMs?: number | undefined;
  readonly signal?: AbortSignal;
}

/** The size that a stream was left with. */
export interface OldSize {
  /** -1 = none but the server's own. */
  readonly maxBytes: number;
  /** What it holds. */
  readonly bytes: number;
}

/** As long as a service waits for its servers. */
const AWAIT_DEADLINE_MS = 180_000;
const AWAIT_LOOK_MS = 250;

/**
 * Creates the streams and buckets that are missing, and updates streams with other settings; or, in the role `await`,
 * returns once they are there.
 * @throws when the server does not answer.
 * @throws {DeadlineError} when nobody made them in time.
 */
export async function ensureTopology(bus: Bus, options: TopologyOptions = {}): Promise<void> {
  const { role = StreamsRole.make, awaitDeadlineMs = AWAIT_DEADLINE_MS, signal } = options;
  const waiting = signal === undefined ? {} : { signal };
  if (role === StreamsRole.await) {
    const what = "the streams that the trainer makes";
    return deadline(what, awaitDeadlineMs, (looking) => untilMade(bus, looking), waiting);
  }
  const maxAttempts = 20;
  await retry(() => createAll(bus, options), { maxAttempts, isRetryable: () => true, ...waiting });
}

/** Every stream of Hone's, those below the buckets included. */
const ALL_STREAMS: readonly string[] = [
  ...DEFINITIONS.map(({ name }) => name),
  ...[BucketName.runState, BucketName.replicas, DEATHS_BUCKET].map((bucket) => `KV_${bucket}`),
  ...PAYLOAD_STORES.map(streamOfStore),
];

async function untilMade(bus: Bus, signal: AbortSignal): Promise<void> {
  for (const name of ALL_STREAMS) {
    while (!(await isStreamThere(bus, name))) await delay(AWAIT_LOOK_MS, { signal });
  }
}

/** A server that is busy or on its way says as little as one without the stream. */
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
      allow_rollup_hdrs: true, // a writer gives up what it could not put to its end
      max_bytes: payloadStoreBytes(writer, episodesBytes),
      num_replicas: replicas,
    };
    await addStream(bus, bucket, true);
  }
}

/** With its size where the server has room for it; where it has not, with the size that it had, or without one. */
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
 * A smaller size is given to a stream of work only once it holds no more than this share of it. A server of version 2.9
 * drops the oldest messages that are more than a new size, whatever the stream does when it is full (2.14 keeps them and
 * refuses new ones), and others may write between the look at the stream and the update.
 */
const SHRINK_SHARE = 0.5;

/** A stream that an older state folder holds keeps its messages and gets these settings. */
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
