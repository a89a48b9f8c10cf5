/** Where a message goes that cannot be decoded: the stream DEAD, whole and with the reason. */

import { headers, type MsgHdrs } from "@nats-io/nats-core";
import type { Bus } from "./bus.ts";
import { translateBusError } from "./errors.ts";
import { publishBytes } from "./publish.ts";
import { StreamName } from "./streams.ts";
import { subjects } from "./subjects.ts";

/** Headers of a dead letter. */
export const DeadHeader = {
  reason: "hone-reason",
  subject: "hone-subject",
  sequence: "hone-sequence",
} as const;

/** Header values may hold no line breaks and should stay readable. */
const MAX_REASON_CHARACTERS = 500;

/** Publishes a copy of the message with the reason. A failure to do so is a failure of the caller's message. */
export async function reportDead(
  bus: Bus,
  stream: string,
  message: { subject: string; data: Uint8Array; headers?: MsgHdrs | undefined },
  reason: string,
  sequence?: number,
): Promise<void> {
  const deadHeaders = headers();
  for (const key of message.headers?.keys() ?? []) {
    // The server's own headers would make it treat the copy as the original (duplicates, expectations).
    if (!key.startsWith("Nats-")) deadHeaders.set(key, message.headers?.get(key) ?? "");
  }
  deadHeaders.set(DeadHeader.reason, reason.replace(/\s+/g, " ").slice(0, MAX_REASON_CHARACTERS));
  deadHeaders.set(DeadHeader.subject, message.subject);
  if (sequence !== undefined) deadHeaders.set(DeadHeader.sequence, String(sequence));
  await publishBytes(bus, subjects.dead(stream), message.data, deadHeaders, {
    ...(sequence === undefined ? {} : { messageId: `${stream}:${sequence}` }),
  });
}

/** How much lies in DEAD, and the latest of it. */
export interface DeadLetters {
  readonly count: number;
  /** Undefined when nothing lies there. */
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
    throw translateBusError(error, "look at what cannot be decoded", StreamName.dead);
  }
}
