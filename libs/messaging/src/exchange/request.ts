/** Sending a request and waiting for its answer: one message, or a stream of messages up to the last one. */

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
  /** Time limit of the answer. */
  readonly timeoutMs: number;
  readonly trace?: Context;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Sends a request and waits for one answer.
 * @throws {BusUnavailableError} when nobody listens or the answer does not arrive in time.
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
  /** Longest time without a message, after which the other side is taken for dead. */
  readonly idleTimeoutMs: number;
  /** Time limit of the whole call. */
  readonly deadlineMs: number;
  /** Called for each message; returns true for the one that ends the call. */
  readonly isLast: (reply: Reply) => boolean;
  readonly onMessage?: (reply: Reply) => void;
  readonly trace?: Context;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Sends a request and receives the messages of the answer until the last one.
 * @returns the last message.
 * @throws {BusUnavailableError} when nobody listens, or no message arrives within the idle time-out.
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
