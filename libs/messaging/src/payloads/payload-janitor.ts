/**
 * Removing bodies that no message points to any more: those behind requests, answers and jobs, and what their writers lost
 * sight of.
 *
 * J1: a body is put before its message is sent. One that is older than every message that could point to it, and by some time
 *     for its writer, is needed by nobody.
 * J2: bodies of episodes go with their messages (purge-episodes.ts); here they go when even that did not see them.
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

/** From the first part of a body until its message is sent and, for one that is read once, read. Many times what either takes. */
export const LEAST_AGE_MS = 10 * 60_000;

/** What large episodes take. */
export interface LargeEpisodes {
  readonly all: number;
  /** Share of its own room that the fullest bucket takes; one without a size counts as empty. */
  readonly fullest: number;
}

/** How much the bodies of large episodes take in their buckets, that of older releases included. */
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

/** Whether any bucket holds anything: a program that is none of the services may have written an episode too. */
export async function areLargePayloadsThere(bus: Bus): Promise<boolean> {
  const stores = [...PAYLOAD_STORES, OLD_PAYLOAD_STORE];
  const infos = await Promise.all(stores.map((store) => infoOf(bus, streamOfStore(store))));
  return infos.some((info) => info !== undefined && info.state.messages > 0);
}

/**
 * Removes what nobody needs (J1).
 * @param nowMs of the clock that messages are dated by, about.
 * @returns how many bodies went; the whole bucket of older releases counts as one.
 */
export async function removeOldPayloads(bus: Bus, nowMs = Date.now()): Promise<number> {
  try {
    const needed = await neededSince(bus, nowMs);
    let removed = 0;
    for (const store of PAYLOAD_STORES) {
      const info = await infoOf(bus, streamOfStore(store));
      // Most of the time: nothing there, or nothing that is old enough for any kind.
      if (info === undefined || info.state.messages === 0) continue;
      if (Date.parse(info.state.first_ts) >= nowMs - LEAST_AGE_MS) continue;
      for (const kind of Object.values(BodyKind))
        removed += await removeBefore(bus, store, kind, needed[kind]);
    }
    return removed + (await emptyOldStore(bus, Math.min(...Object.values(needed))));
  } catch (error) {
    throw translateBusError(error, "remove large payloads that nobody needs", "PAYLOADS_*");
  }
}

/** For each kind, the time before which a body was put that nobody needs. */
async function neededSince(bus: Bus, nowMs: number): Promise<Readonly<Record<BodyKind, number>>> {
  const [jobs, episodes] = await Promise.all([
    bus.manager.streams.info(StreamName.jobs),
    bus.manager.streams.info(StreamName.episodes),
  ]);
  const since = ({ state }: StreamInfo) =>
    Math.min(nowMs, state.messages === 0 ? nowMs : Date.parse(state.first_ts)) - LEAST_AGE_MS;
  return {
    once: nowMs - LEAST_AGE_MS,
    job: since(jobs),
    episode: since(episodes),
    kept: nowMs - EVENTS_MAX_AGE_MS - LEAST_AGE_MS,
  };
}

async function removeBefore(bus: Bus, store: string, kind: BodyKind, timeMs: number): Promise<number> {
  for (let removed = 0; ; removed++) {
    const first = await nextMessage(bus, streamOfStore(store), partsSubject(store, `${kind}.>`), 1);
    if (first === undefined || first.time.getTime() >= timeMs) return removed;
    await purgeSubject(bus, store, first.subject); // as it lies there: a writer may call its bodies what it likes
  }
}

/** Nothing new comes into it. Once its latest is needed by nobody, all of it is. */
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
