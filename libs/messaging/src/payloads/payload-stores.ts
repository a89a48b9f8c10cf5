/**
 * The buckets that bodies above the server's limit lie in, and how long each body lies there.
 *
 * P1: every user of the bus writes to a bucket of its own, `PAYLOADS_<user>`: of the subjects of a bucket a right can name the
 *     bucket alone, so that a shared one lets each user remove and replace what another has put (bus-rights.ts).
 * P2: a reader takes a bucket from this list only, whatever a message says.
 * P3: a writer uses a new name for every body, and needs no right to purge. The trainer alone removes: a body behind an episode
 *     together with it (purge-episodes.ts), and all others when nothing can point to them any more (payload-janitor.ts).
 * P4: messages of an older release point to the one bucket that it had. It is read and emptied, and nobody writes to it.
 */

import { type ServiceName, subjects } from "../subjects.ts";

/** Users of the bus that send messages: the services, and people and programs that submit runs. */
export type PayloadWriter = ServiceName | "client";

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;

/** Of the size of EPISODES: the room for large ones that their writer has. */
export const EPISODES_SHARE = 0.25;
/** Least room for large episodes: two of the largest. */
const LEAST_FOR_EPISODES = 512 * MIB;

/** Room of each writer in bytes; of those that write episodes, by the size of the stream EPISODES. */
const SIZES: Readonly<Record<PayloadWriter, number | "by episodes">> = {
  "agent-rollout": "by episodes",
  judge: "by episodes",
  // Large tasks in jobs that wait.
  trainer: 512 * MIB,
  // Batches of large tasks, each for as long as one answer is read.
  dataset: 512 * MIB,
  "inference-gateway": 256 * MIB,
  client: 256 * MIB,
  // It sends nothing but small questions.
  tracer: 64 * MIB,
};

export const PAYLOAD_WRITERS = Object.keys(SIZES) as readonly PayloadWriter[];

/** The bucket of older releases (P4). */
export const OLD_PAYLOAD_STORE = "PAYLOADS";

/** The bucket that a user writes to (P1). */
export function payloadStoreOf(writer: PayloadWriter): string {
  return `PAYLOADS_${writer}`;
}

/** Every bucket that is written to. */
export const PAYLOAD_STORES: readonly string[] = PAYLOAD_WRITERS.map(payloadStoreOf);

/** Buckets with bodies of episodes that this release wrote. */
export const EPISODE_STORES: readonly string[] = PAYLOAD_WRITERS.filter(
  (writer) => SIZES[writer] === "by episodes",
).map(payloadStoreOf);

/** Who writes to the bus where a program of this name is connected; people's programs have any name. */
export function payloadWriterOf(name: string): PayloadWriter {
  return PAYLOAD_WRITERS.find((writer) => writer === name) ?? "client";
}

/** Size of a writer's bucket in bytes, where the stream EPISODES has that size. */
export function payloadStoreBytes(writer: PayloadWriter, episodesMaxBytes: number): number {
  const size = SIZES[writer];
  if (size !== "by episodes") return size;
  return Math.max(LEAST_FOR_EPISODES, Math.floor(episodesMaxBytes * EPISODES_SHARE));
}

/** Sizes in words for people, such as "2 GiB". */
export function showBytes(bytes: number): string {
  if (bytes >= GIB) return `${Number((bytes / GIB).toFixed(2))} GiB`;
  if (bytes >= MIB) return `${Number((bytes / MIB).toFixed(2))} MiB`;
  return `${bytes} bytes`;
}

/** The stream below a bucket. */
export function streamOfStore(store: string): string {
  return `OBJ_${store}`;
}

/** What a message with a large body is, which says how long the body is needed. */
export const BodyKind = {
  /** A request or an answer, read at once. */
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

/** What a message in a stream is, by its subject. */
export function bodyKindOf(subject: string): BodyKind {
  if (subject.startsWith(JOB_PREFIX)) return BodyKind.job;
  return EPISODE.test(subject) ? BodyKind.episode : BodyKind.kept;
}

/** Subject of a body's parts, in order. @param name as a message gives it: its kind and a token */
export function partsSubject(store: string, name: string): string {
  return `$O.${store}.C.${name}`;
}
