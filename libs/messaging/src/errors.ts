/** Errors of the bus; text and classes of the client library become these in one place, {@link translateBusError}. */

import { DeadlineError, RetryableError, TerminalError } from "@hone/core";
import { JetStreamApiError, JetStreamError } from "@nats-io/jetstream";
import {
  ClosedConnectionError,
  DrainingConnectionError,
  RequestError,
  TimeoutError,
} from "@nats-io/nats-core";

/** The server, or whoever should answer, is not there at the moment. */
export class BusUnavailableError extends RetryableError {
  readonly subject: string;

  constructor(action: string, subject: string, options?: ErrorOptions) {
    super(
      "BUS_UNAVAILABLE",
      `Cannot ${action} as nobody answers on the bus: current value is ${subject}`,
      options,
    );
    this.subject = subject;
  }
}

/** A stream is at its limit and takes no more: the sender must slow down. */
export class StreamFullError extends RetryableError {
  readonly subject: string;

  constructor(
    subject: string,
    options?: ErrorOptions,
    message = `Cannot publish as the stream is at its limit: current value is ${subject}`,
  ) {
    super("STREAM_FULL", message, options);
    this.subject = subject;
  }
}

/** The bucket that holds a user's large payloads takes no more: its sender must slow down, as for a full stream. */
export class PayloadStoreFullError extends StreamFullError {
  constructor(store: string, { size, limit }: { size: string; limit: string }, options?: ErrorOptions) {
    super(
      store,
      options,
      `Cannot put a payload of ${size} into the bucket ${store} as it is full (it takes ${limit}): wait until what lies there is read and removed; if it stays full, look whether its readers run, or give the bus more room (docs/reliability.md, room for episodes)`,
    );
  }
}

/** A key changed since it was read: the writer is no longer the one who decides. */
export class RevisionConflictError extends TerminalError {
  readonly key: string;

  constructor(key: string, options?: ErrorOptions) {
    super(
      "REVISION_CONFLICT",
      `Cannot update a key as another writer changed it: current value is ${key}`,
      options,
    );
    this.key = key;
  }
}

/** A question names a subject for its answer on which no answer is heard: answering would publish there in its place. */
export class ReplySubjectError extends TerminalError {
  constructor(reply: string) {
    super(
      "REPLY_SUBJECT",
      `Cannot answer a question as its reply must begin with _INBOX, or with _R_ where the bus renamed it: current value is ${reply.slice(0, 200)}`,
    );
  }
}

/** A message cannot be decoded. */
export class UndecodableMessageError extends TerminalError {
  readonly subject: string;

  constructor(subject: string, reason: string, options?: ErrorOptions) {
    super("UNDECODABLE", `Cannot decode a message as ${reason}: current value is one on ${subject}`, options);
    this.subject = subject;
  }
}

/** A message is larger than any reader takes. */
export class PayloadTooLargeError extends TerminalError {
  constructor(name: string, bytes: number, maxBytes: number) {
    super(
      "PAYLOAD_TOO_LARGE",
      `Cannot send ${name} as a message has at most ${maxBytes} bytes: current value is ${bytes}`,
    );
  }
}

/** Server error codes of JetStream (server/errors.json of nats-server). */
const WRONG_LAST_SEQUENCE = 10071;
const STREAM_STORE_FAILED = 10077;
const ACCOUNT_RESOURCES_EXCEEDED = 10002;
/** The server's own storage is used up. */
const STORAGE_EXCEEDED = 10047;
const FULL_CODES: ReadonlySet<number> = new Set([
  STREAM_STORE_FAILED,
  ACCOUNT_RESOURCES_EXCEEDED,
  STORAGE_EXCEEDED,
]);

/** Failures whose classes the client library keeps to itself. A server whose disk was full has its streams turned off. */
const AWAY_NAMES: ReadonlySet<string> = new Set(["NoRespondersError", "JetStreamNotEnabled"]);

/**
 * What a failure of the client library means here.
 * @param action in words, such as "publish" or "ask dataset".
 */
export function translateBusError(error: unknown, action: string, subject: string): Error {
  if (error instanceof RetryableError || error instanceof TerminalError) return error;
  if (error instanceof JetStreamApiError) {
    if (error.code === WRONG_LAST_SEQUENCE) return new RevisionConflictError(subject, { cause: error });
    if (FULL_CODES.has(error.code)) return new StreamFullError(subject, { cause: error });
    return new BusUnavailableError(action, subject, { cause: error });
  }
  if (
    error instanceof JetStreamError ||
    error instanceof TimeoutError ||
    error instanceof RequestError ||
    error instanceof ClosedConnectionError ||
    error instanceof DrainingConnectionError ||
    error instanceof DeadlineError
  ) {
    return new BusUnavailableError(action, subject, { cause: error });
  }
  if (error instanceof Error && AWAY_NAMES.has(error.name)) {
    return new BusUnavailableError(action, subject, { cause: error });
  }
  return error instanceof Error ? error : new BusUnavailableError(action, subject, { cause: error });
}
