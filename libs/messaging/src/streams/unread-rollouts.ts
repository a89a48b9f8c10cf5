/**
 * What the tracer may be behind.
 *
 * Scored episodes wait in EPISODES for three readers. Two of them do the work of training, the judge and the trainer: what
 * they need is never dropped, and a full stream makes the others wait for them. The third, the tracer, only shows what
 * happened. One that cannot write must not end training, so that what waits for it alone is bounded:
 *
 * U1: as long as EPISODES and the buckets of large episodes together take at most {@link UNREAD_SHARE} of what EPISODES may
 *     take, and no such bucket takes more than that of its own room, nothing is dropped that the tracer has not read.
 * U2: above that the oldest of it goes, half of it at a time, until there is room or only work is left.
 * U3: what goes is counted by the server that drops it, and told in EVENTS, by one number per run that only grows. It is too
 *     large by what the tracer had in its hands in that moment and stored nevertheless, and too small only by what a trainer
 *     dropped that was killed before its event.
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
import { neededFrom, purgeBelow } from "./purge-episodes.ts";
import { StreamName } from "./streams.ts";

/** Of the size of EPISODES (U1). The other half is for work: a step, and what a replay needs. */
export const UNREAD_SHARE = 0.5;
/** The same where the server had no room to set the stream's size aside, and the stream has none (streams.ts). */
const UNREAD_BYTES_WITHOUT_SIZE = 256 * 1024 ** 2;

/**
 * Drops the oldest episodes of a run that nobody but the tracer needs (U1, U2).
 * @param below first sequence that the trainer still needs.
 * @returns how many scored rollouts the tracer will not have.
 */
export async function dropUnread(bus: Bus, run: string, below: number): Promise<number> {
  let unread = 0;
  try {
    while (await isCrowded(bus)) {
      const needed = await neededFrom(bus, below, DurableName.scoredEpisodes);
      const first = await nextMessage(bus, StreamName.episodes, subjects.episodes(run), 1);
      if (first === undefined || first.seq >= needed) break;
      const keepFrom = first.seq + Math.ceil((needed - first.seq) / 2);
      const { pending, inWork } = await consumerBacklog(bus, StreamName.episodes, DurableName.scoredEpisodes);
      const { scored } = await purgeBelow(bus, run, keepFrom);
      // The tracer may have read some of them, whose neighbours it has not.
      unread += Math.min(pending + inWork, scored);
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

/** Tells of rollouts that the tracer will not have, beside those that were told before (U3). */
export async function tellUnread(bus: Bus, run: string, rollouts: number): Promise<void> {
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

/** How many rollouts of each run the tracer does not have, as they were dropped before it read them; runs with none are absent. */
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
