/** Removes episodes that no reader needs any more, and the objects that they point to. */

import { type ConsumerInfo, DeliverPolicy } from "@nats-io/jetstream";
import type { Bus } from "../bus.ts";
import { translateBusError } from "../errors.ts";
import { purgeObject } from "../payloads/objects.ts";
import { objectOf } from "../payloads/payload.ts";
import { hasLargePayloads } from "../payloads/payload-janitor.ts";
import { subjects } from "../subjects.ts";
import { StreamName } from "./streams.ts";

/** If listing the messages with objects stops for this long, the rest is left to the next purge. */
const LIST_IDLE_MS = 2_000;

/**
 * Purges the episodes of one run below a position, except those that a durable consumer of the stream (judge, tracer) has not
 * acknowledged yet.
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
 * @returns the lowest position that is still needed: the caller's, or that of a durable consumer that is behind it.
 * @param below first position that the caller still needs.
 * @param ignored a durable consumer that does not count.
 */
export async function neededFrom(bus: Bus, below: number, ignored?: string): Promise<number> {
  let keepFrom = below;
  const consumers: ConsumerInfo[] = [];
  for await (const consumer of bus.manager.consumers.list(StreamName.episodes)) consumers.push(consumer);
  const { state } = await bus.manager.streams.info(StreamName.episodes);
  for (const consumer of consumers) {
    const { durable_name: durable } = consumer.config;
    if (durable === undefined || durable === ignored) continue;
    // This consumer was created in advance for a service that has not begun to read; its start is not waited for.
    if (consumer.delivered.consumer_seq === 0) continue;
    // The stream was started over, and this consumer has read nothing of it yet (stream-reset.ts).
    if (consumer.delivered.stream_seq > state.last_seq) return 0;
    const hasBacklog = consumer.num_pending + consumer.num_ack_pending > 0;
    if (hasBacklog) keepFrom = Math.min(keepFrom, consumer.ack_floor.stream_seq + 1);
  }
  return keepFrom;
}

/** Numbers of messages that a purge dropped, as the server counted them. */
export interface PurgedEpisodes {
  readonly finished: number;
  readonly scored: number;
}

/** Purges the episodes of one run below a position, and the objects that they point to. */
export async function purgeBelow(bus: Bus, run: string, below: number): Promise<PurgedEpisodes> {
  // For the server a position of 0 or 1 means everything.
  if (below <= 1) return { finished: 0, scored: 0 };
  // One filter at a time, as a consumer of nats-server 2.9 has one filter, which must lie within one subject of the stream.
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

/** Deletes the objects of messages that are about to be purged. It reads only headers, and nothing if there are no objects. */
async function deleteObjects(bus: Bus, filter: string, below: number): Promise<void> {
  if (!(await hasLargePayloads(bus))) return;
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
