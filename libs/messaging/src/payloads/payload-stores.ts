/**
 * The buckets for bodies above the server's limit, and how long each body is kept.
 *
 * P1: every user of the bus writes to its own bucket, `PAYLOADS_<user>`. Rights can only be given for a whole bucket, so in a
 *     shared one each user could remove and replace the bodies of others (bus-rights.ts).
 * P2: a reader accepts only the buckets of this list, whatever a message says.
 * P3: a writer uses a new name for every body, and needs no right to purge. Only the trainer removes bodies: that of an episode
 *     together with it (purge-episodes.ts), all others when nothing can point to them any more (payload-janitor.ts).
 * P4: messages of an older release point to the only bucket that it had. It is read and emptied; nobody writes to it.
 */

import { type ServiceName, subjects } from "../subjects.ts";

/** Users of the bus that send messages: the services, and people and programs that submit runs. */
export type PayloadWriter = ServiceName | "client";

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;

/** Size of the bucket for large episodes of one writer, as a share of the size of EPISODES. */
export const EPISODES_SHARE = 0.25;
/** Smallest size of a bucket for large episodes: two of the largest. */
const MIN_EPISODES_BYTES = 512 * MIB;

/** Size of each writer's bucket in bytes; for writers of episodes it depends on the size of the stream EPISODES. */
const SIZES: Readonly<Record<PayloadWriter, number | "by episodes">> = {
  "agent-rollout": "by episodes",
  judge: "by episodes",
  // Large tasks in waiting jobs.
  trainer: 512 * MIB,
  // Batches of large tasks, each kept until its answer is read.
  dataset: 512 * MIB,
  "inference-gateway": 256 * MIB,
  client: 256 * MIB,
  // It sends only small requests.
  tracer: 64 * MIB,
};

export const PAYLOAD_WRITERS = Object.keys(SIZES) as readonly PayloadWriter[];

/** The bucket of older releases (P4). */
export const OLD_PAYLOAD_STORE = "PAYLOADS";

/** @returns the bucket that a user writes to (P1). */
export function payloadStoreOf(writer: PayloadWriter): string {
  return `PAYLOADS_${writer}`;
}

/** All buckets that are written to. */
export const PAYLOAD_STORES: readonly string[] = PAYLOAD_WRITERS.map(payloadStoreOf);

/** The buckets with bodies of episodes, without that of older releases. */
export const EPISODE_STORES: readonly string[] = PAYLOAD_WRITERS.filter(
  (writer) => SIZES[writer] === "by episodes",
).map(payloadStoreOf);

/** @returns the writer for a program of this name; every program that is not a service is a client. */
export function payloadWriterOf(name: string): PayloadWriter {
  return PAYLOAD_WRITERS.find((writer) => writer === name) ?? "client";
}

/** @returns the size of a writer's bucket in bytes. @param episodesMaxBytes size of the stream EPISODES. */
export function payloadStoreBytes(writer: PayloadWriter, episodesMaxBytes: number): number {
  const size = SIZES[writer];
  if (size !== "by episodes") return size;
  return Math.max(MIN_EPISODES_BYTES, Math.floor(episodesMaxBytes * EPISODES_SHARE));
}

/** @returns a size for people, such as "2 GiB". */
export function showBytes(bytes: number): string {
  if (bytes >= GIB) return `${Number((bytes / GIB).toFixed(2))} GiB`;
  if (bytes >= MIB) return `${Number((bytes / MIB).toFixed(2))} MiB`;
  return `${bytes} bytes`;
}

/** The stream below a bucket. */
export function streamOfStore(store: string): string {
  return `OBJ_${store}`;
}

/** The kind of a message with a large body, which decides how long the body is needed. */
export const BodyKind = {
  /** A request or an answer, which is read at once. */
  once: "once",
  /** As long as the stream JOBS may hold the job. */
  job: "job",
  /** As long as the stream EPISODES may hold the episode. */
  episode: "episode",
  /** As long as the stream EVENTS keeps its messages: events and requests of runs. */
  kept: "kept",
} as const;
export type BodyKind = (typeof BodyKind)[keyof typeof BodyKind];

const EPISODE = /^hone\.v1\.rollout\.(?:finished|scored)\./;
const JOB_PREFIX = subjects.rolloutJob("*").slice(0, -1);

/** @returns the kind of a message in a stream, by its subject. */
export function bodyKindOf(subject: string): BodyKind {
  if (subject.startsWith(JOB_PREFIX)) return BodyKind.job;
  return EPISODE.test(subject) ? BodyKind.episode : BodyKind.kept;
}

/** @returns the subject of a body's parts. @param name the object's name in its message: a kind and a token. */
export function partsSubject(store: string, name: string): string {
  return `$O.${store}.C.${name}`;
}
