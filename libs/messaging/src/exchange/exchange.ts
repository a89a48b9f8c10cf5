/**
 * One question on the wire, with the messages that come back until the asker has what it wants. What `request`,
 * `requestStream` and publishing into a stream have in common, with one promise and no stack kept for failures that do not
 * happen: this is what every turn and every episode costs.
 *
 * X1: an exchange settles once: by its asker, because nobody listens, by a lost connection, a deadline or the signal.
 * X2: whatever settles it, its reply subject, timers and listener are given back.
 */

import type { Msg, MsgHdrs } from "@nats-io/nats-core";
import type { Context } from "@opentelemetry/api";
import type { Bus } from "../bus.ts";
import { countRequest } from "../bus-metrics.ts";
import { BusUnavailableError, translateBusError } from "../errors.ts";
import { injectTrace } from "./trace-headers.ts";

/** A body ready to be published. */
export interface Body {
  readonly data: Uint8Array;
  readonly headers: MsgHdrs | undefined;
}

/** What an exchange is for, and how it may end without an answer. */
export interface ExchangeLimits {
  /** In the message of a failure, such as "publish". */
  readonly action: string;
  /** Longest exchange in all. */
  readonly deadlineMs: number;
  /** The error of one that takes longer. */
  readonly onDeadline: () => Error;
  /** Longest silence. @default none */
  readonly idleTimeoutMs?: number;
  readonly trace?: Context | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Ends an exchange with its answer, or without one. */
export interface Settle<Answer> {
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/** The server's own answer to a request on a subject that nobody listens on. */
const NO_RESPONDERS = 503;

/** Asks, hands each message that comes back to `onMessage`, and settles when that says so (X1). */
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
    const giveBack = () => {
      inbox.close();
      clearTimeout(overall);
      clearTimeout(idle);
      signal?.removeEventListener("abort", onAbort);
    };
    const resolve = (answer: Answer) => {
      giveBack(); // X2
      countRequest(subject, startedAt, "ok");
      onAnswer(answer);
    };
    const reject = (error: unknown) => {
      giveBack(); // X2
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
            () => reject(new BusUnavailableError(`hear anything for ${idleTimeoutMs} ms`, subject)),
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
