/** Removes episodes that no reader needs any more, and the objects that they point to. */

import { fromBinary } from "@bufbuild/protobuf";
import { ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { AckPolicy, type Consumer, type ConsumerInfo, DeliverPolicy, type JsMsg } from "@nats-io/jetstream";
import type { Bus } from "../bus.ts";
import { translateBusError } from "../errors.ts";
import { nextMessage } from "../follow/follow-messages.ts";
import { purgeObject } from "../payloads/objects.ts";
import { objectOf } from "../payloads/payload.ts";
import { hasLargePayloads } from "../payloads/payload-janitor.ts";
import { dropRemovedRewards, openRewardsOf } from "../rewards/open-rewards.ts";
import { subjects } from "../subjects.ts";
import { StreamName } from "./streams.ts";

/** If listing the messages with objects stops for this long, the rest is left to the next purge. */
const LIST_IDLE_MS = 2_000;

/**
 * Purges the episodes of one run below a position, except those that a durable consumer of the stream (judge, tracer) has not
 * acknowledged yet, and finished ones that a scored one left points to.
 * @param below first sequence that the caller still needs.
 * @returns how many messages were dropped.
 */
export async function purgeEpisodes(bus: Bus, run: string, below: number): Promise<number> {
  try {
    const scoredBelow = await neededFrom(bus, below);
    const scored = await purgeScored(bus, run, scoredBelow);
    // If no scored episode was dropped, those left point to the same finished ones as before.
    const isSame = scored === 0 && (await hasScored(bus, run, scoredBelow));
    if (isSame) return 0;
    return scored + (await purgeFinished(bus, run, await finishedNeededFrom(bus, run, scoredBelow)));
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
    // What such a consumer delivers is only a second copy (kept-episodes.ts).
    if (consumer.config.ack_policy === AckPolicy.None) continue;
    // This consumer was created in advance for a service that has not begun to read; its start is not waited for.
    if (consumer.delivered.consumer_seq === 0) continue;
    // The stream was started over, and this consumer has read nothing of it yet (stream-reset.ts).
    if (consumer.delivered.stream_seq > state.last_seq) return 0;
    const hasBacklog = consumer.num_pending + consumer.num_ack_pending > 0;
    if (hasBacklog) keepFrom = Math.min(keepFrom, consumer.ack_floor.stream_seq + 1);
  }
  return keepFrom;
}

/** Purges the scored episodes of one run below a position. @returns how many. */
export function purgeScored(bus: Bus, run: string, below: number): Promise<number> {
  return purgeBelow(bus, subjects.rolloutScored(run), subjects.scoredToPurge(run), below);
}

/** The same for finished episodes. */
export function purgeFinished(bus: Bus, run: string, below: number): Promise<number> {
  return purgeBelow(bus, subjects.rolloutFinished(run), subjects.finishedToPurge(run), below);
}

/** Purges one kind of a run's episodes: a consumer of nats-server 2.9 has one filter, which must lie within one subject of the stream. */
async function purgeBelow(bus: Bus, subject: string, filter: string, seq: number): Promise<number> {
  // For the server a position of 0 or 1 means everything.
  if (seq <= 1) return 0;
  await deleteObjects(bus, subject, seq);
  const { purged } = await bus.manager.streams.purge(StreamName.episodes, { filter, seq });
  return purged;
}

/**
 * The judge may score episodes in another order than it got them, so a scored one behind a position may point to a finished
 * one before it.
 * @param scoredFrom first position of the scored episodes that are needed.
 * @returns the first position of the finished episodes that these need, or that wait for rewards, at most `scoredFrom`; 0 if the
 *     server stopped answering.
 */
export async function finishedNeededFrom(bus: Bus, run: string, scoredFrom: number): Promise<number> {
  // The judge acknowledges such an episode once its entry is stored. The caller has looked at what is acknowledged before, so
  // none is missed.
  const rewards = await openRewardsOf(bus, run);
  await dropRemovedRewards(bus, run, rewards);
  const open = rewards.rollouts.map(({ finished }) => Number(finished?.position ?? 0n));
  return Math.min(await scoredNeedFrom(bus, run, scoredFrom), ...open);
}

async function scoredNeedFrom(bus: Bus, run: string, scoredFrom: number): Promise<number> {
  if (!(await hasScored(bus, run, scoredFrom))) return scoredFrom;
  const consumer = await bus.stream.consumers.get(StreamName.episodes, {
    filter_subjects: subjects.rolloutScored(run),
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: scoredFrom,
  });
  let neededFrom = scoredFrom;
  let left = Number.POSITIVE_INFINITY;
  for await (const { data, info } of present(consumer)) {
    neededFrom = Math.min(neededFrom, finishedAt(data) ?? scoredFrom);
    left = info.pending;
  }
  return left === 0 ? neededFrom : 0;
}

/** Whether the stream holds a scored episode of a run at or after a position. */
async function hasScored(bus: Bus, run: string, from: number): Promise<boolean> {
  return (await nextMessage(bus, StreamName.episodes, subjects.rolloutScored(run), from)) !== undefined;
}

/** @returns the position of the finished episode that a scored one points to; undefined if it points to none. */
function finishedAt(data: Uint8Array): number | undefined {
  try {
    const { finished } = fromBinary(ScoredEpisodeSchema, data);
    return finished === undefined ? undefined : Number(finished.position);
  } catch {
    return undefined; // not a scored episode: no reader will get anything from it
  }
}

/** Yields the messages that an ordered consumer has before it now. */
async function* present(consumer: Consumer): AsyncGenerator<JsMsg> {
  let { num_pending: pending } = await consumer.info();
  while (pending > 0) {
    let count = 0;
    for await (const message of await consumer.fetch({
      max_messages: Math.min(pending, 500),
      expires: LIST_IDLE_MS,
    })) {
      count++;
      pending = message.info.pending;
      yield message;
    }
    if (count === 0) return;
  }
}

/** Deletes the objects of messages that are about to be purged. It reads only headers, and nothing if there are no objects. */
async function deleteObjects(bus: Bus, filter: string, below: number): Promise<void> {
  if (!(await hasLargePayloads(bus))) return;
  const consumer = await bus.stream.consumers.get(StreamName.episodes, {
    filter_subjects: filter,
    deliver_policy: DeliverPolicy.All,
    headers_only: true,
  });
  for await (const message of present(consumer)) {
    if (message.seq >= below) return;
    const object = objectOf(message.headers);
    if (object !== undefined) await purgeObject(bus, object);
  }
}
