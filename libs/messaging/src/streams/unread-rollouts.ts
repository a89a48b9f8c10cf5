/**
 * Limits how far the tracer may fall behind.
 *
 * Episodes wait in EPISODES for three readers. The judge and the trainer do the work of training: what they need is never
 * dropped, and when the stream is full the writers wait for them. The tracer only shows what happened. If it cannot write,
 * training must go on, so the episodes that only the tracer still needs are limited:
 *
 * U1: while EPISODES and the buckets of large episodes together use at most {@link UNREAD_SHARE} of the size of EPISODES, and
 *     no such bucket uses more than that share of its own size, no episode is dropped that the tracer has not read.
 * U2: above that the oldest half of these episodes is dropped, again and again until there is space or none is left.
 * U3: the server counts the dropped episodes, and they are reported in EVENTS by one number per run that only grows. It is too
 *     large if the tracer was just storing an episode that was dropped, and too small only if a trainer was killed between a
 *     purge and its report.
 */

import { create, fromBinary } from "@bufbuild/protobuf";
import { RunEvent_RolloutsUnreadSchema, RunEventSchema } from "@hone/proto-gen/run";
import type { Bus } from "../bus.ts";
import { translateBusError } from "../errors.ts";
import { publishStored } from "../exchange/publish.ts";
import { latestMessage, nextMessage } from "../follow/follow-messages.ts";
import { bytesOfLargeEpisodes } from "../payloads/payload-janitor.ts";
import { EventKind, runOfEvent, subjects } from "../subjects.ts";
import { consumerBacklog } from "./backlog.ts";
import { DurableName } from "./durables.ts";
import { finishedNeededFrom, neededFrom, purgeFinished, purgeScored } from "./purge-episodes.ts";
import { StreamName } from "./streams.ts";

/** Share of the size of EPISODES (U1). The other half is for work: a step, and what a replay needs. */
export const UNREAD_SHARE = 0.5;
/** The same for a stream without a size, which the server had no space to reserve (streams.ts). */
const UNREAD_BYTES_WITHOUT_SIZE = 256 * 1024 ** 2;

/**
 * Drops the oldest episodes of a run that only the tracer needs (U1, U2).
 * @param below first position that the trainer still needs.
 * @returns how many scored rollouts the tracer will not get.
 */
export async function dropUnread(bus: Bus, run: string, below: number): Promise<number> {
  let unread = 0;
  try {
    while (await isCrowded(bus)) {
      const scoredFrom = await neededFrom(bus, below, DurableName.scoredEpisodes);
      const needed = await finishedNeededFrom(bus, run, scoredFrom);
      const first = await nextMessage(bus, StreamName.episodes, subjects.episodes(run), 1);
      if (first === undefined || first.seq >= needed) break;
      // All episodes below one position go: nats-server 2.9 waits for ever for the acknowledgement of a dropped message with
      // others before it. A scored episode whose finished one is gone is passed over by the tracer.
      const keepFrom = first.seq + Math.ceil((needed - first.seq) / 2);
      const { pending, inWork } = await consumerBacklog(bus, StreamName.episodes, DurableName.scoredEpisodes);
      const finished = await purgeFinished(bus, run, keepFrom);
      await purgeScored(bus, run, keepFrom);
      // The tracer may have read some of the dropped episodes already.
      unread += Math.min(pending + inWork, finished);
    }
    return unread;
  } catch (error) {
    throw translateBusError(error, "drop episodes that the tracer has not read", run);
  }
}

async function isCrowded(bus: Bus): Promise<boolean> {
  const [episodes, large] = await Promise.all([
    bus.manager.streams.info(StreamName.episodes),
    bytesOfLargeEpisodes(bus),
  ]);
  const maxBytes = episodes.config.max_bytes;
  const share = maxBytes > 0 ? maxBytes * UNREAD_SHARE : UNREAD_BYTES_WITHOUT_SIZE;
  return episodes.state.bytes + large.all > share || large.fullest > UNREAD_SHARE;
}

/** Reports rollouts that the tracer will not get, in addition to those reported before (U3). */
export async function reportUnread(bus: Bus, run: string, rollouts: number): Promise<void> {
  const subject = subjects.event(run, EventKind.unread);
  const before = (await unreadOf(bus, subject)) ?? 0;
  const value = create(RunEvent_RolloutsUnreadSchema, { rollouts: BigInt(before + rollouts) });
  const event = create(RunEventSchema, {
    runId: run,
    timeMs: BigInt(Date.now()),
    kind: { case: "rolloutsUnread", value },
  });
  await publishStored(bus, subject, RunEventSchema, event);
}

/** @returns for each run how many rollouts were dropped before the tracer read them; runs without such rollouts are absent. */
export async function unreadRollouts(bus: Bus): Promise<ReadonlyMap<string, number>> {
  const unread = new Map<string, number>();
  const { state } = await bus.manager.streams.info(StreamName.events, {
    subjects_filter: subjects.event("*", EventKind.unread),
  });
  for (const subject of Object.keys(state.subjects ?? {})) {
    const rollouts = await unreadOf(bus, subject);
    if (rollouts !== undefined) unread.set(runOfEvent(subject), rollouts);
  }
  return unread;
}

async function unreadOf(bus: Bus, subject: string): Promise<number | undefined> {
  const message = await latestMessage(bus, StreamName.events, subject);
  if (message === undefined) return undefined;
  const { kind } = fromBinary(RunEventSchema, message.data);
  return kind.case === "rolloutsUnread" ? Number(kind.value.rollouts) : undefined;
}
