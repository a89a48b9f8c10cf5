/** The stream DEAD, which keeps copies of messages that cannot be decoded, with the reason. */

import { headers, type MsgHdrs } from "@nats-io/nats-core";
import type { Bus } from "../bus.ts";
import { translateBusError } from "../errors.ts";
import { publishBytes } from "../exchange/publish.ts";
import { HEADROOM_BYTES, type StoredMessage } from "../payloads/payload.ts";
import { StreamName } from "../streams/streams.ts";
import { subjects } from "../subjects.ts";

/** Headers of a dead letter. */
export const DeadHeader = {
  reason: "hone-reason",
  subject: "hone-subject",
  sequence: "hone-sequence",
  /** Size of the message, if the copy holds only its beginning. */
  clippedFrom: "hone-clipped-from",
} as const;

/** Enough to see what was wrong. */
const MAX_REASON_CHARACTERS = 500;
/** Size of the copied headers; together with the reason they fit into the space for headers. */
const MAX_COPIED_HEADER_BYTES = HEADROOM_BYTES / 2;

/** Publishes a copy of the message with the reason. @throws when it cannot be stored. */
export async function reportDead(
  bus: Bus,
  stream: string,
  message: StoredMessage,
  reason: string,
  sequence?: number,
): Promise<void> {
  const deadHeaders = copiedHeaders(message.headers);
  deadHeaders.set(DeadHeader.reason, oneLine(reason).slice(0, MAX_REASON_CHARACTERS));
  deadHeaders.set(DeadHeader.subject, message.subject);
  if (sequence !== undefined) deadHeaders.set(DeadHeader.sequence, String(sequence));
  // A message that just fitted with few headers would not fit with the reason.
  const room = Math.max(0, bus.maxPayloadBytes() - HEADROOM_BYTES);
  const isClipped = message.data.length > room;
  if (isClipped) deadHeaders.set(DeadHeader.clippedFrom, String(message.data.length));
  const data = isClipped ? message.data.subarray(0, room) : message.data;
  await publishBytes(bus, subjects.dead(stream), data, deadHeaders, {
    ...(sequence === undefined ? {} : { messageId: `${stream}:${sequence}` }),
  });
}

function copiedHeaders(from: MsgHdrs | undefined): MsgHdrs {
  const copied = headers();
  let bytes = 0;
  for (const key of from?.keys() ?? []) {
    // The server's own headers would make it treat the copy as the original (duplicates, expectations).
    if (/^nats-/i.test(key)) continue;
    const value = oneLine(from?.get(key) ?? "");
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
    if (bytes > MAX_COPIED_HEADER_BYTES) break;
    copied.set(key, value);
  }
  return copied;
}

/** Header values may hold no line breaks. */
function oneLine(text: string): string {
  return text.replace(/\s+/g, " ");
}

/** The number of messages in DEAD, and the latest. */
export interface DeadLetters {
  readonly count: number;
  /** Undefined if DEAD is empty. */
  readonly last: { readonly subject: string; readonly reason: string; readonly timeMs: number } | undefined;
}

/** @throws {BusUnavailableError} when the server does not answer. */
export async function readDeadLetters(bus: Bus): Promise<DeadLetters> {
  try {
    const { state } = await bus.manager.streams.info(StreamName.dead);
    if (state.messages === 0) return { count: 0, last: undefined };
    const last = await bus.manager.streams.getMessage(StreamName.dead, { seq: state.last_seq });
    if (last === null) return { count: state.messages, last: undefined };
    return {
      count: state.messages,
      last: {
        subject: last.header.get(DeadHeader.subject),
        reason: last.header.get(DeadHeader.reason),
        timeMs: last.time.getTime(),
      },
    };
  } catch (error) {
    throw translateBusError(error, "read dead letters", StreamName.dead);
  }
}
