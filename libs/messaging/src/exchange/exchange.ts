/**
 * One request with the messages that come back, until the requester has what it needs. `request`, `requestStream` and
 * publishing into a stream are built on it. It uses one promise and captures no stack trace in advance, as every turn and
 * every episode pays its cost.
 *
 * X1: an exchange settles once: through its requester, because nobody listens, or through a lost connection, a deadline or
 *     the signal.
 * X2: however it settles, its reply subject, timers and listener are released.
 */

import type { Msg, MsgHdrs } from "@nats-io/nats-core";
import type { Context } from "@opentelemetry/api";
import type { Bus } from "../bus.ts";
import { countRequest } from "../bus-metrics.ts";
import { BusUnavailableError, translateBusError } from "../errors.ts";
import { injectTrace } from "./trace-headers.ts";

/** An encoded body. */
export interface Body {
  readonly data: Uint8Array;
  readonly headers: MsgHdrs | undefined;
}

/** What an exchange is for, and when it ends without an answer. */
export interface ExchangeLimits {
  /** Names the exchange in error messages, such as "publish". */
  readonly action: string;
  /** Time limit of the whole exchange. */
  readonly deadlineMs: number;
  /** Creates the error of an exchange that takes longer. */
  readonly onDeadline: () => Error;
  /** Longest time without a message. @default none */
  readonly idleTimeoutMs?: number;
  readonly trace?: Context | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Ends an exchange with its answer or with an error. */
export interface Settle<Answer> {
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/** The server's own answer to a request on a subject without subscribers. */
const NO_RESPONDERS = 503;

/** Sends a request, and calls `onMessage` for each message that comes back until it settles the exchange (X1). */
export function exchange<Answer>(
  bus: Bus,
  subject: string,
  body: Body,
  limits: ExchangeLimits,
  onMessage: (message: Msg, settle: Settle<Answer>) => void,
): Promise<Answer> {
  const { action, deadlineMs, onDeadline, idleTimeoutMs, trace, signal } = limits;
  const startedAt = performance.now();
  return new Promise<Answer>((onAnswer, onFailure) => {
    const release = () => {
      inbox.close();
      clearTimeout(overall);
      clearTimeout(idle);
      signal?.removeEventListener("abort", onAbort);
    };
    const resolve = (answer: Answer) => {
      release(); // X2
      countRequest(subject, startedAt, "ok");
      onAnswer(answer);
    };
    const reject = (error: unknown) => {
      release(); // X2
      countRequest(subject, startedAt, "failed");
      onFailure(signal?.aborted ? signal.reason : translateBusError(error, action, subject));
    };
    const settle: Settle<Answer> = { resolve, reject };
    const onAbort = () => reject(signal?.reason);
    const inbox = bus.replies.open((message) => {
      if (message.data.length === 0 && message.headers?.code === NO_RESPONDERS) {
        reject(new BusUnavailableError("find a listener", subject));
        return;
      }
      idle?.refresh();
      onMessage(message, settle);
    }, reject);
    const overall = setTimeout(() => reject(onDeadline()), deadlineMs);
    const idle =
      idleTimeoutMs === undefined
        ? undefined
        : setTimeout(
            () => reject(new BusUnavailableError(`get a message within ${idleTimeoutMs} ms`, subject)),
            idleTimeoutMs,
          );
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      const headers = injectTrace(body.headers, trace);
      bus.connection.publish(subject, body.data, {
        reply: inbox.subject,
        ...(headers === undefined ? {} : { headers }),
      });
    } catch (error) {
      reject(error);
    }
  });
}
