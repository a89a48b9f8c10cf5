/** Asking: one answer, or a stream of messages that ends the call. */

import { type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { DeadlineError } from "@hone/core";
import type { Msg } from "@nats-io/nats-core";
import type { Context } from "@opentelemetry/api";
import type { Bus } from "../bus.ts";
import { BusUnavailableError } from "../errors.ts";
import { decodeBody, encodeBody } from "../payloads/payload.ts";
import { BodyKind } from "../payloads/payload-stores.ts";
import { exchange } from "./exchange.ts";

/** Options of {@link request}. */
export interface RequestOptions {
  /** How long the answer may take. */
  readonly timeoutMs: number;
  readonly trace?: Context;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Asks and waits for one answer.
 * @throws {BusUnavailableError} when nobody listens or the answer does not come in time.
 */
export async function request<Request extends DescMessage, Reply extends DescMessage>(
  bus: Bus,
  subject: string,
  requestSchema: Request,
  message: MessageShape<Request>,
  replySchema: Reply,
  options: RequestOptions,
): Promise<MessageShape<Reply>> {
  const { timeoutMs, trace, signal } = options;
  signal?.throwIfAborted();
  const body = await encodeBody(bus, requestSchema, message, BodyKind.once, {
    deadlineMs: timeoutMs,
    ...(signal !== undefined && { signal }),
  });
  signal?.throwIfAborted();
  const answer = await exchange<Msg>(
    bus,
    subject,
    body,
    {
      action: "get an answer",
      deadlineMs: timeoutMs,
      onDeadline: () => new BusUnavailableError(`get an answer within ${timeoutMs} ms`, subject),
      trace,
      signal,
    },
    (first, { resolve }) => resolve(first),
  );
  return decodeBody(bus, replySchema, answer);
}

/** Options of {@link requestStream}. */
export interface RequestStreamOptions<Reply> {
  /** Longest silence: a side that says nothing for longer is taken for dead. */
  readonly idleTimeoutMs: number;
  /** Longest call in all. */
  readonly deadlineMs: number;
  /** Called for each message; `true` ends the call with it. */
  readonly isLast: (reply: Reply) => boolean;
  readonly onMessage?: (reply: Reply) => void;
  readonly trace?: Context;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Asks and follows the messages of the answer until one of them is the last.
 * @returns the last message.
 * @throws {BusUnavailableError} when nobody listens, or nothing is heard for the idle time-out.
 * @throws {DeadlineError} when the whole call takes too long.
 */
export async function requestStream<Request extends DescMessage, Reply extends DescMessage>(
  bus: Bus,
  subject: string,
  requestSchema: Request,
  message: MessageShape<Request>,
  replySchema: Reply,
  options: RequestStreamOptions<MessageShape<Reply>>,
): Promise<MessageShape<Reply>> {
  const { idleTimeoutMs, deadlineMs, isLast, onMessage, trace, signal } = options;
  signal?.throwIfAborted();
  return exchange<MessageShape<Reply>>(
    bus,
    subject,
    { data: toBinary(requestSchema, message), headers: undefined },
    {
      action: "get an answer",
      idleTimeoutMs,
      deadlineMs,
      onDeadline: () => new DeadlineError(`the answer on ${subject}`, deadlineMs),
      trace,
      signal,
    },
    (answer, { resolve, reject }) => {
      decodeBody(bus, replySchema, answer)
        .then((reply) => {
          if (isLast(reply)) resolve(reply);
          else onMessage?.(reply);
        })
        .catch(reject);
    },
  );
}
