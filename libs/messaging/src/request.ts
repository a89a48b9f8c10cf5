/** Asking: one answer, or a stream of messages that ends the call. */

import { type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { DeadlineError, raceAbortable } from "@hone/core";
import type { Context } from "@opentelemetry/api";
import type { Bus } from "./bus.ts";
import { BusUnavailableError, translateBusError } from "./errors.ts";
import { decodeBody, encodeBody } from "./payload.ts";
import { headersOption } from "./publish.ts";
import { injectTrace } from "./trace-headers.ts";

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
  const body = await encodeBody(bus, requestSchema, message, `${subject}/${crypto.randomUUID()}`);
  try {
    const answer = await raceAbortable(
      bus.connection.request(subject, body.data, {
        timeout: options.timeoutMs,
        ...headersOption(injectTrace(body.headers, options.trace)),
      }),
      options.signal,
    );
    return await decodeBody(bus, replySchema, answer);
  } catch (error) {
    if (options.signal?.aborted) throw options.signal.reason;
    throw translateBusError(error, "get an answer", subject);
  }
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
  const body = toBinary(requestSchema, message);
  const { promise, resolve, reject } = Promise.withResolvers<MessageShape<Reply>>();
  const onIdle = () => reject(new BusUnavailableError(`hear anything for ${idleTimeoutMs} ms`, subject));
  const onAbort = () => reject(signal?.reason);
  const inbox = bus.replies.open((answer) => {
    if (answer.data.length === 0 && answer.headers?.code === 503) {
      reject(new BusUnavailableError("find a listener", subject));
      return;
    }
    idle.refresh();
    decodeBody(bus, replySchema, answer).then((reply) => {
      if (isLast(reply)) resolve(reply);
      else onMessage?.(reply);
    }, reject);
  });
  const idle = setTimeout(onIdle, idleTimeoutMs);
  const overall = setTimeout(
    () => reject(new DeadlineError(`the answer on ${subject}`, deadlineMs)),
    deadlineMs,
  );
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    bus.connection.publish(subject, body, {
      reply: inbox.subject,
      ...headersOption(injectTrace(undefined, trace)),
    });
    return await promise;
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw error instanceof DeadlineError ? error : translateBusError(error, "get an answer", subject);
  } finally {
    inbox.close();
    clearTimeout(idle);
    clearTimeout(overall);
    signal?.removeEventListener("abort", onAbort);
  }
}
