/** Dropping episodes that no reader needs any more, with the objects that they point to. */

import { type ConsumerInfo, DeliverPolicy } from "@nats-io/jetstream";
import type { Bus } from "../bus.ts";
import { translateBusError } from "../errors.ts";
import { purgeObject } from "../payloads/objects.ts";
import { objectOf } from "../payloads/payload.ts";
import { areLargePayloadsThere } from "../payloads/payload-janitor.ts";
import { subjects } from "../subjects.ts";
import { StreamName } from "./streams.ts";

/** How long listing the messages with objects may stand still before it is given up until the next purge. */
const LIST_IDLE_MS = 2_000;

/**
 * Purges the episodes of one run below a sequence, but never past what a durable consumer of the stream (judge,
 * tracer) has not acknowledged yet.
 * @param below first sequence that the caller still needs.
 * @returns how many messages were dropped.
 */
export async function purgeEpisodes(bus: Bus, run: string, below: number): Promise<number> {
  try {
    const { finished, scored } = await purgeBelow(bus, run, await neededFrom(bus, below));
    return finished + scored;
  } catch (error) {
    throw translateBusError(error, "purge episodes", run);
  }
}

/**
 * The lowest position that is still needed: the caller's, or that of a durable consumer which lies behind it.
 * @param below first sequence that the caller still needs.
 * @param unheeded a durable that is not waited for.
 */
export async function neededFrom(bus: Bus, below: number, unheeded?: string): Promise<number> {
  let keepFrom = below;
  const consumers: ConsumerInfo[] = [];
  for await (const consumer of bus.manager.consumers.list(StreamName.episodes)) consumers.push(consumer);
  const { state } = await bus.manager.streams.info(StreamName.episodes);
  for (const consumer of consumers) {
    const { durable_name: durable } = consumer.config;
    if (durable === undefined || durable === unheeded) continue;
    // Made in advance, for a service that does not run or has not begun: what it would begin with is not waited for.
    if (consumer.delivered.consumer_seq === 0) continue;
    // Of a stream that began again it has read nothing, and does not know it yet (stream-reset.ts).
    if (consumer.delivered.stream_seq > state.last_seq) return 0;
    const hasBacklog = consumer.num_pending + consumer.num_ack_pending > 0;
    if (hasBacklog) keepFrom = Math.min(keepFrom, consumer.ack_floor.stream_seq + 1);
  }
  return keepFrom;
}

/** How many messages of each kind a purge dropped, as the server counted them. */
export interface PurgedEpisodes {
  readonly finished: number;
  readonly scored: number;
}

/** Purges the episodes of one run below a position, and deletes the objects that they point to. */
export async function purgeBelow(bus: Bus, run: string, below: number): Promise<PurgedEpisodes> {
  // The server takes a position of 0 or 1 for "everything".
  if (below <= 1) return { finished: 0, scored: 0 };
  // One filter at a time: a consumer of a server of version 2.9 has one, which lies within one of the stream's.
  const purge = async (objectsOf: string, filter: string): Promise<number> => {
    await deleteObjects(bus, objectsOf, below);
    const { purged } = await bus.manager.streams.purge(StreamName.episodes, { filter, seq: below });
    return purged;
  };
  return {
    finished: await purge(subjects.rolloutFinished(run), subjects.finishedToPurge(run)),
    scored: await purge(subjects.rolloutScored(run), subjects.scoredToPurge(run)),
  };
}

/** Deletes the objects of messages that are about to be purged; reads headers only, and nothing where no object is. */
async function deleteObjects(bus: Bus, filter: string, below: number): Promise<void> {
  if (!(await areLargePayloadsThere(bus))) return;
  const consumer = await bus.stream.consumers.get(StreamName.episodes, {
    filter_subjects: filter,
    deliver_policy: DeliverPolicy.All,
    headers_only: true,
  });
  let { num_pending: pending } = await consumer.info();
  while (pending > 0) {
    let last = 0;
    for await (const message of await consumer.fetch({
      max_messages: Math.min(pending, 500),
      expires: LIST_IDLE_MS,
    })) {
      last = message.seq;
      pending = message.info.pending;
      const object = message.seq < below ? objectOf(message.headers) : undefined;
      if (object !== undefined) await purgeObject(bus, object);
    }
    if (last === 0 || last >= below) return;
  }
}
