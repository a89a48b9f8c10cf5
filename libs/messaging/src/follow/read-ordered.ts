/** Reads a stream in order from a position, without acknowledging anything. */

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { delay, describeError } from "@hone/core";
import { type ConsumerMessages, DeliverPolicy } from "@nats-io/jetstream";
import type { Context } from "@opentelemetry/api";
import type { Bus } from "../bus.ts";
import { UndecodableMessageError } from "../errors.ts";
import { extractTrace } from "../exchange/trace-headers.ts";
import { decodeBytes, fetchBody } from "../payloads/payload.ts";
import { isBeyondStream } from "../streams/stream-reset.ts";
import type { StreamName } from "../streams/streams.ts";
import { reportDead } from "../work/dead-letter.ts";

/** One message of the stream. */
export interface OrderedItem<Message> {
  readonly message: Message;
  readonly subject: string;
  readonly sequence: number;
  /** Approximate size in the stream, with what it points to. */
  readonly bytes: number;
  readonly trace: Context;
}

/** Options of {@link readOrdered}. */
export interface ReadOrderedOptions {
  readonly stream: StreamName;
  readonly filter: string;
  /** The first sequence number that is yielded; absent = from the beginning. */
  readonly fromSequence?: number;
  readonly signal: AbortSignal;
  /** Called for lost connections, after which reading goes on by itself, and for messages that went to DEAD. */
  readonly onError?: (error: unknown) => void;
}

/** @returns the message that a body is, and its size in bytes. */
export type ReadBody<Message> = (
  data: Uint8Array,
  subject: string,
) => Promise<{ readonly message: Message; readonly size: number }>;

/** Pause before a lost consumer is opened again. */
export const REOPEN_DELAY_MS = 250;
/** Duration of one pull; the server sends heartbeats within it. */
const PULL_EXPIRES_MS = 5_000;
/** A consumer that a restarted server has forgotten is noticed after two of these; with the library's default it takes half a minute. */
const HEARTBEAT_MS = 1_000;
/** Bytes of a message's subject, headers and the server's own data: some 300, rounded up. */
export const ENVELOPE_BYTES = 512;
/** Messages that may be buffered in this process. */
const MAX_BUFFERED = 512;
/** How messages are pulled by a reader that goes on for as long as its process. */
export const STEADY_PULL = {
  max_messages: MAX_BUFFERED,
  expires: PULL_EXPIRES_MS,
  idle_heartbeat: HEARTBEAT_MS,
} as const;

/**
 * Yields every message from a position on, in order and each once, until the signal aborts. After a lost connection or
 * consumer it goes on after the last message that it yielded. A stream that was started over (stream-reset.ts) is read from
 * its beginning.
 */
export function readOrdered<Schema extends DescMessage>(
  bus: Bus,
  schema: Schema,
  options: ReadOrderedOptions,
): AsyncGenerator<OrderedItem<MessageShape<Schema>>> {
  const readBody = async (data: Uint8Array, subject: string) => ({
    message: decodeBytes(schema, data, subject),
    size: data.length,
  });
  return readOrderedBodies(bus, readBody, options);
}

/**
 * {@link readOrdered} for bodies that point to other messages.
 * @param readBody if it throws an UndecodableMessageError, the message goes to DEAD; after any other error it is read again.
 */
export async function* readOrderedBodies<Message>(
  bus: Bus,
  readBody: ReadBody<Message>,
  options: ReadOrderedOptions,
): AsyncGenerator<OrderedItem<Message>> {
  const { stream, filter, signal, onError } = options;
  let next = options.fromSequence ?? 1;
  while (!signal.aborted) {
    let messages: ConsumerMessages | undefined;
    const stop = () => void messages?.close();
    try {
      if (await isBeyondStream(bus, stream, next)) next = 1;
      const consumer = await bus.stream.consumers.get(stream, {
        filter_subjects: filter,
        deliver_policy: DeliverPolicy.StartSequence,
        opt_start_seq: next,
      });
      messages = await consumer.consume(STEADY_PULL);
      signal.addEventListener("abort", stop, { once: true });
      if (signal.aborted) stop(); // aborted while it was opened; the library closes it once the loop below runs
      for await (const message of messages) {
        if (signal.aborted) return;
        let body: Awaited<ReturnType<typeof readBody>>;
        try {
          body = await readBody(await fetchBody(bus, message), message.subject);
        } catch (error) {
          // If the object store does not answer, this message is the first that is read again.
          if (!(error instanceof UndecodableMessageError)) throw error;
          await reportDead(bus, stream, message, describeError(error), message.seq);
          next = message.seq + 1;
          onError?.(error);
          continue;
        }
        next = message.seq + 1;
        yield {
          message: body.message,
          subject: message.subject,
          sequence: message.seq,
          bytes: body.size + ENVELOPE_BYTES,
          trace: extractTrace(message.headers),
        };
      }
    } catch (error) {
      if (signal.aborted) return;
      onError?.(error);
      await delay(REOPEN_DELAY_MS);
    } finally {
      signal.removeEventListener("abort", stop);
      await messages?.close();
    }
  }
}
