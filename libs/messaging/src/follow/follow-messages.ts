/**
 * Reads a stream by requesting one message after the other, without a consumer. A consumer can make the server deliver the
 * messages of a stream to any subject, so only the trainer may create one (bus-rights.ts).
 *
 * This is meant for small and infrequent messages: states, events, parts of large bodies. Episodes are read with consumers.
 *
 * F1: no stored message is skipped, and each is yielded once, in the order of the stream.
 * F2: a published message wakes the reader. The reader receives it before it is stored, and also receives messages that the
 *     stream then refuses, so it only looks at the stream again, after short pauses until it has found as many messages as woke it.
 */

import { pause } from "@hone/core";
import type { StoredMsg } from "@nats-io/jetstream";
import type { Bus } from "../bus.ts";
import { isBeyondStream } from "../streams/stream-reset.ts";

/** Pauses between looks since the last wake-up. The last one repeats, as a wake-up may be lost with the connection. */
const LOOKS_MS = [5, 25, 125, 625, 2_000] as const;
const LONG_PAUSE = LOOKS_MS.length - 1;

/** @returns the first message of a filter at or after a position; undefined if there is none. */
export async function nextMessage(
  bus: Bus,
  stream: string,
  filter: string,
  from: number,
): Promise<StoredMsg | undefined> {
  const query = { seq: from, next_by_subj: filter };
  return (await bus.manager.streams.getMessage(stream, query)) ?? undefined;
}

/** @returns the latest message of a subject; undefined if there is none. */
export async function latestMessage(
  bus: Bus,
  stream: string,
  subject: string,
): Promise<StoredMsg | undefined> {
  return (await bus.manager.streams.getMessage(stream, { last_by_subj: subject })) ?? undefined;
}

/** Yields all present messages of a filter. */
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
  /** The first sequence number that is yielded. @default 1 */
  readonly fromSequence?: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * Yields every message from a position on (F1), until the signal aborts. A stream that was started over (stream-reset.ts) is
 * read from its beginning.
 * @throws the server's error when the stream cannot be read.
 */
export async function* followMessages(bus: Bus, options: FollowMessagesOptions): AsyncGenerator<StoredMsg> {
  const { stream, filter, signal } = options;
  let next = options.fromSequence ?? 1;
  let looks = 0;
  let awaited = 0;
  let woken = new AbortController();
  let refusal: Error | undefined;
  const subscription = bus.connection.subscribe(filter, {
    callback: (error) => {
      refusal ??= error ?? undefined;
      looks = 0;
      awaited++;
      woken.abort(); // F2
    },
  });
  try {
    while (!signal.aborted) {
      // This is set before the look, so that messages published meanwhile are not missed.
      woken = new AbortController();
      const isLong = looks > LONG_PAUSE;
      if (isLong) awaited = 0; // the stream refused a message
      if (isLong && (await isBeyondStream(bus, stream, next))) next = 1;
      const message = await nextMessage(bus, stream, filter, next);
      if (message !== undefined) {
        next = message.seq + 1;
        looks = awaited === 1 ? LONG_PAUSE : 0;
        awaited = Math.max(0, awaited - 1);
        yield message;
        continue;
      }
      if (refusal !== undefined) throw refusal;
      const pauseMs = LOOKS_MS[Math.min(looks, LONG_PAUSE)] ?? 0;
      looks++;
      await pause(pauseMs, AbortSignal.any([signal, woken.signal]));
    }
  } finally {
    subscription.unsubscribe();
  }
}
