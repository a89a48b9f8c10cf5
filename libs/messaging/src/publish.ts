/** Publishing into streams, which acknowledge what they stored. */

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { RetryableError, retry } from "@hone/core";
import type { MsgHdrs } from "@nats-io/nats-core";
import type { Context } from "@opentelemetry/api";
import type { Bus } from "./bus.ts";
import { countPublished } from "./bus-metrics.ts";
import { StreamFullError, translateBusError } from "./errors.ts";
import { encodeBody } from "./payload.ts";
import { injectTrace } from "./trace-headers.ts";

/** Options of {@link publishStored}. */
export interface PublishOptions {
  /** The stream stores one message of an id within its duplicate window, however often it is sent. */
  readonly messageId?: string;
  /** How long to go on trying while the bus is away or the stream is full. @default 60_000 */
  readonly deadlineMs?: number;
  /** Trace context to send. @default the active one */
  readonly trace?: Context;
  readonly signal?: AbortSignal;
}

/** What the stream says of a stored message. */
export interface Stored {
  readonly sequence: number;
  /** The stream had this message id already; nothing was stored. */
  readonly isDuplicate: boolean;
}

/** One try; the answer of a healthy server takes milliseconds. */
const ACK_TIMEOUT_MS = 2_000;
const DEFAULT_DEADLINE_MS = 60_000;

/**
 * Publishes into a stream and waits for its acknowledgement. Calls may be made without waiting for one another: the
 * stream keeps the order in which they were made as long as none has to be retried.
 * @throws {StreamFullError | BusUnavailableError} when the deadline passes.
 */
export async function publishStored<Schema extends DescMessage>(
  bus: Bus,
  subject: string,
  schema: Schema,
  message: MessageShape<Schema>,
  options: PublishOptions = {},
): Promise<Stored> {
  const body = await encodeBody(
    bus,
    schema,
    message,
    () => `${subject}/${options.messageId ?? crypto.randomUUID()}`,
  );
  return publishBytes(bus, subject, body.data, body.headers, options);
}

/** {@link publishStored} for a body that is encoded already. */
export async function publishBytes(
  bus: Bus,
  subject: string,
  data: Uint8Array | string,
  bodyHeaders: MsgHdrs | undefined,
  options: PublishOptions = {},
): Promise<Stored> {
  const { messageId, deadlineMs = DEFAULT_DEADLINE_MS, trace, signal } = options;
  const messageHeaders = injectTrace(bodyHeaders, trace);
  const giveUpAt = performance.now() + deadlineMs;
  const stored = retry(
    async () => {
      try {
        const ack = await bus.stream.publish(subject, data, {
          timeout: ACK_TIMEOUT_MS,
          ...(messageId === undefined ? {} : { msgID: messageId }),
          ...(messageHeaders === undefined ? {} : { headers: messageHeaders }),
        });
        return { sequence: ack.seq, isDuplicate: ack.duplicate };
      } catch (error) {
        throw translateBusError(error, "publish", subject);
      }
    },
    {
      signal,
      isRetryable: (error) =>
        (error instanceof RetryableError || error instanceof StreamFullError) && performance.now() < giveUpAt,
    },
  );
  stored.then(
    () => countPublished(subject, true),
    () => countPublished(subject, false), // the caller gets the error
  );
  return stored;
}

/** The `headers` option of the client library, left out where there are none. */
export function headersOption(value: MsgHdrs | undefined): { headers?: MsgHdrs } {
  return value === undefined ? {} : { headers: value };
}
