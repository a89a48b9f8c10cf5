/** Sends one message to a stream, again and again until the stream has stored it or the deadline passes. */

import { RetryableError, retry } from "@hone/core";
import { type ApiError, JetStreamApiError, PubHeaders } from "@nats-io/jetstream";
import { headers, type Msg, type MsgHdrs } from "@nats-io/nats-core";
import type { Context } from "@opentelemetry/api";
import type { Bus } from "../bus.ts";
import { BusUnavailableError, StreamFullError, translateBusError } from "../errors.ts";
import { type Body, type ExchangeLimits, exchange } from "./exchange.ts";

/** Options of {@link storeMessage}. */
export interface StoreOptions {
  /** Within its duplicate window the stream stores a message with this id once, however often it is sent. */
  readonly messageId?: string;
  /** How long to try again while the bus does not answer or the stream is full. @default 60_000 */
  readonly deadlineMs?: number;
  /** Trace context to send. @default the active one */
  readonly trace?: Context;
  readonly signal?: AbortSignal;
  /** Called after every failed attempt. */
  readonly onFailure?: (error: unknown) => void;
}

/** The stream's acknowledgement of a message. */
export interface Stored {
  readonly sequence: number;
  /** Whether the stream already had a message with this id; it was then not stored again. */
  readonly isDuplicate: boolean;
}

/** Time limit of one attempt; a healthy server answers within milliseconds. */
const ACK_TIMEOUT_MS = 2_000;
const DEFAULT_DEADLINE_MS = 60_000;

/** @throws {StreamFullError | BusUnavailableError} when the deadline passes. */
export function storeMessage(
  bus: Bus,
  subject: string,
  { data, headers: bodyHeaders }: Body,
  options: StoreOptions = {},
): Promise<Stored> {
  const { messageId, deadlineMs = DEFAULT_DEADLINE_MS, trace, signal, onFailure } = options;
  const body = {
    data,
    headers: messageId === undefined ? bodyHeaders : withMessageId(bodyHeaders, messageId),
  };
  const giveUpAt = performance.now() + deadlineMs;
  return retry(() => publishOnce(bus, subject, body, { trace, signal }), {
    signal,
    isRetryable: (error) => {
      onFailure?.(error);
      return (
        (error instanceof RetryableError || error instanceof StreamFullError) && performance.now() < giveUpAt
      );
    },
  });
}

/** A stream's answer to a message: its position, or why it was not stored. */
interface Acknowledgement {
  readonly seq?: number;
  readonly duplicate?: boolean;
  readonly error?: ApiError;
}

async function publishOnce(
  bus: Bus,
  subject: string,
  body: Body,
  options: Pick<ExchangeLimits, "trace" | "signal">,
): Promise<Stored> {
  const action = "publish";
  const answer = await exchange<Msg>(
    bus,
    subject,
    body,
    {
      ...options,
      action,
      deadlineMs: ACK_TIMEOUT_MS,
      onDeadline: () => new BusUnavailableError(`publish within ${ACK_TIMEOUT_MS} ms`, subject),
    },
    (first, { resolve }) => resolve(first),
  );
  const { seq, duplicate = false, error } = answer.json<Acknowledgement>();
  if (error !== undefined) throw translateBusError(new JetStreamApiError(error), action, subject);
  if (seq === undefined) throw new BusUnavailableError("publish into a stream", subject);
  return { sequence: seq, isDuplicate: duplicate };
}

/** Adds the header by which streams recognise duplicates. */
function withMessageId(into: MsgHdrs | undefined, messageId: string): MsgHdrs {
  const carrier = into ?? headers();
  carrier.set(PubHeaders.MsgIdHdr, messageId);
  return carrier;
}
