/**
 * Reading what a stream holds by asking for one message after the other, without a consumer: whoever may make a consumer
 * has the server deliver what a stream holds to any subject, so only the trainer may (bus-rights.ts).
 *
 * For what is small and seldom: states, events, parts of large bodies. Episodes come by consumers.
 *
 * F1: nothing that is stored is passed over, and each message comes once, in the order of the stream.
 * F2: what is published wakes the reader. It hears of it before it is stored, and of what the stream refuses as well: the
 *     stream alone is believed, and is looked at again after short pauses.
 */

import { pause } from "@hone/core";
import type { StoredMsg } from "@nats-io/jetstream";
import type { Bus } from "../bus.ts";
import { isBeyondStream } from "../streams/stream-reset.ts";

/** Between looks since the last sign of something new. The last one goes on: a sign is lost with a connection. */
const LOOKS_MS = [5, 25, 125, 625, 2_000] as const;

/** The first message of a filter from a position on; undefined where there is none. */
export async function nextMessage(
  bus: Bus,
  stream: string,
  filter: string,
  from: number,
): Promise<StoredMsg | undefined> {
  const query = { seq: from, next_by_subj: filter };
  return (await bus.manager.streams.getMessage(stream, query)) ?? undefined;
}

/** The latest message of a subject; undefined where there is none. */
export async function latestMessage(
  bus: Bus,
  stream: string,
  subject: string,
): Promise<StoredMsg | undefined> {
  return (await bus.manager.streams.getMessage(stream, { last_by_subj: subject })) ?? undefined;
}

/** Every message that a filter has now. */
export async function* presentMessages(bus: Bus, stream: string, filter: string): AsyncGenerator<StoredMsg> {
  for (let from = 1; ; ) {
    const message = await nextMessage(bus, stream, filter, from);
    if (message === undefined) return;
    yield message;
    from = message.seq + 1;
  }
}

/** Options of {@link followMessages}. */
export interface FollowMessagesOptions {
  readonly stream: string;
  readonly filter: string;
  /** First sequence wanted. @default 1 */
  readonly fromSequence?: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * Every message from a position on (F1), for as long as the signal allows. A stream that began again (stream-reset.ts) is
 * read from its beginning.
 * @throws what the server answers when the stream cannot be looked at.
 */
export async function* followMessages(bus: Bus, options: FollowMessagesOptions): AsyncGenerator<StoredMsg> {
  const { stream, filter, signal } = options;
  let next = options.fromSequence ?? 1;
  let looks = 0;
  let woken = new AbortController();
  let refusal: Error | undefined;
  const subscription = bus.connection.subscribe(filter, {
    callback: (error) => {
      refusal ??= error ?? undefined;
      looks = 0;
      woken.abort(); // F2
    },
  });
  try {
    while (!signal.aborted) {
      // Before the look: what is published meanwhile is not missed.
      woken = new AbortController();
      const isLong = looks >= LOOKS_MS.length;
      if (isLong && (await isBeyondStream(bus, stream, next))) next = 1;
      const message = await nextMessage(bus, stream, filter, next);
      if (message !== undefined) {
        next = message.seq + 1;
        looks = 0;
        yield message;
        continue;
      }
      if (refusal !== undefined) throw refusal;
      const pauseMs = LOOKS_MS[looks] ?? LOOKS_MS.at(-1) ?? 0;
      looks++;
      await pause(pauseMs, AbortSignal.any([signal, woken.signal]));
    }
  } finally {
    subscription.unsubscribe();
  }
}
