/**
 * Removes bodies that no message points to any more: those of requests, answers and jobs, and those that their writers could
 * not drop.
 *
 * J1: a body is stored before its message is sent. A body that is older than every message that could point to it, plus some
 *     time for its writer, is not needed any more.
 * J2: bodies of episodes are removed with their messages (purge-episodes.ts); the rest of them is removed here.
 */

import { JetStreamApiError, type StreamInfo } from "@nats-io/jetstream";
import type { Bus } from "../bus.ts";
import { translateBusError } from "../errors.ts";
import { nextMessage } from "../follow/follow-messages.ts";
import { EVENTS_MAX_AGE_MS, StreamName } from "../streams/streams.ts";
import { purgeSubject } from "./objects.ts";
import {
  BodyKind,
  EPISODE_STORES,
  OLD_PAYLOAD_STORE,
  PAYLOAD_STORES,
  partsSubject,
  streamOfStore,
} from "./payload-stores.ts";

/** Time from the first part of a body until its message is sent and, if it is read only once, read; many times what that takes. */
export const MIN_AGE_MS = 10 * 60_000;

/** The space that large episodes use. */
export interface LargeEpisodes {
  readonly all: number;
  /** Used share of the fullest bucket's size; a bucket without a size counts as empty. */
  readonly fullest: number;
}

/** @returns the space that bodies of large episodes use in their buckets, including that of older releases. */
export async function bytesOfLargeEpisodes(bus: Bus): Promise<LargeEpisodes> {
  const stores = [...EPISODE_STORES, OLD_PAYLOAD_STORE];
  const found = await Promise.all(stores.map((store) => infoOf(bus, streamOfStore(store))));
  const infos = found.filter((info) => info !== undefined);
  return {
    all: infos.reduce((sum, { state }) => sum + state.bytes, 0),
    fullest: Math.max(
      0,
      ...infos.map(({ config, state }) => (config.max_bytes > 0 ? state.bytes / config.max_bytes : 0)),
    ),
  };
}

/** Whether any bucket holds something. All are checked, as a program that is not a service may have written an episode. */
export async function hasLargePayloads(bus: Bus): Promise<boolean> {
  const stores = [...PAYLOAD_STORES, OLD_PAYLOAD_STORE];
  const infos = await Promise.all(stores.map((store) => infoOf(bus, streamOfStore(store))));
  return infos.some((info) => info !== undefined && info.state.messages > 0);
}

/**
 * Removes bodies that nobody needs (J1).
 * @param nowMs the present time, approximately, by the clock that dates messages.
 * @returns how many bodies were removed; the whole bucket of older releases counts as one.
 */
export async function removeOldPayloads(bus: Bus, nowMs = Date.now()): Promise<number> {
  try {
    const needed = await neededSince(bus, nowMs);
    let removed = 0;
    for (const store of PAYLOAD_STORES) {
      const info = await infoOf(bus, streamOfStore(store));
      // Usually a bucket is empty, or holds nothing that is old enough for any kind.
      if (info === undefined || info.state.messages === 0) continue;
      if (Date.parse(info.state.first_ts) >= nowMs - MIN_AGE_MS) continue;
      for (const kind of Object.values(BodyKind))
        removed += await removeBefore(bus, store, kind, needed[kind]);
    }
    return removed + (await emptyOldStore(bus, Math.min(...Object.values(needed))));
  } catch (error) {
    throw translateBusError(error, "remove large payloads that nobody needs", "PAYLOADS_*");
  }
}

/** @returns for each kind the time from which on bodies are needed; older ones are not. */
async function neededSince(bus: Bus, nowMs: number): Promise<Readonly<Record<BodyKind, number>>> {
  const [jobs, episodes] = await Promise.all([
    bus.manager.streams.info(StreamName.jobs),
    bus.manager.streams.info(StreamName.episodes),
  ]);
  const since = ({ state }: StreamInfo) =>
    Math.min(nowMs, state.messages === 0 ? nowMs : Date.parse(state.first_ts)) - MIN_AGE_MS;
  return {
    once: nowMs - MIN_AGE_MS,
    job: since(jobs),
    episode: since(episodes),
    kept: nowMs - EVENTS_MAX_AGE_MS - MIN_AGE_MS,
  };
}

async function removeBefore(bus: Bus, store: string, kind: BodyKind, timeMs: number): Promise<number> {
  for (let removed = 0; ; removed++) {
    const first = await nextMessage(bus, streamOfStore(store), partsSubject(store, `${kind}.>`), 1);
    if (first === undefined || first.time.getTime() >= timeMs) return removed;
    await purgeSubject(bus, store, first.subject); // its own subject, as writers may name their bodies as they like
  }
}

/** Empties the bucket of older releases once its latest message is not needed. Nothing new is written to it. */
async function emptyOldStore(bus: Bus, timeMs: number): Promise<number> {
  const stream = streamOfStore(OLD_PAYLOAD_STORE);
  const info = await infoOf(bus, stream);
  if (info === undefined || info.state.messages === 0 || Date.parse(info.state.last_ts) >= timeMs) return 0;
  await bus.manager.streams.purge(stream);
  return 1;
}

/** nats-server's server/errors.json: "stream not found". */
const STREAM_NOT_FOUND = 10059;

async function infoOf(bus: Bus, stream: string): Promise<StreamInfo | undefined> {
  return bus.manager.streams.info(stream).catch((error: unknown) => {
    if (error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND) return undefined;
    throw error;
  });
}
