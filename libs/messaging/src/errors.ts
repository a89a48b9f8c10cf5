/** Errors of the bus. {@link translateBusError} is the only place that translates errors of the client library into them. */

import { DeadlineError, RetryableError, TerminalError } from "@hone/core";
import { JetStreamApiError, JetStreamError } from "@nats-io/jetstream";
import {
  ClosedConnectionError,
  DrainingConnectionError,
  RequestError,
  TimeoutError,
} from "@nats-io/nats-core";

/** The server, or the service that should answer, does not answer at the moment. */
export class BusUnavailableError extends RetryableError {
  readonly subject: string;

  constructor(action: string, subject: string, options?: ErrorOptions) {
    super("BUS_UNAVAILABLE", `Cannot ${action}: nobody answers on the bus (${subject})`, options);
    this.subject = subject;
  }
}

/** A stream is full and accepts no more messages: the sender must wait. */
export class StreamFullError extends RetryableError {
  readonly subject: string;

  constructor(
    subject: string,
    options?: ErrorOptions,
    message = `Cannot publish on ${subject}: the stream is at its limit; wait until its messages are read`,
  ) {
    super("STREAM_FULL", message, options);
    this.subject = subject;
  }
}

/** The bucket for a user's large payloads is full: the sender must wait, as for a full stream. */
export class PayloadStoreFullError extends StreamFullError {
  constructor(store: string, { size, limit }: { size: string; limit: string }, options?: ErrorOptions) {
    super(
      store,
      options,
      `Cannot store a payload of ${size}: the bucket ${store} is full (it takes ${limit}): wait until its contents are read and removed; if it stays full, check that its readers run, or give the bus more space (docs/reliability.md, room for episodes)`,
    );
  }
}

/** A key was changed by another writer since it was read. */
export class RevisionConflictError extends TerminalError {
  readonly key: string;

  constructor(key: string, options?: ErrorOptions) {
    super(
      "REVISION_CONFLICT",
      `Cannot update the key ${key}: another writer changed it since it was read`,
      options,
    );
    this.key = key;
  }
}

/** A request names a reply subject that is not for answers: answering it would publish on that subject for the requester. */
export class ReplySubjectError extends TerminalError {
  constructor(reply: string) {
    super(
      "REPLY_SUBJECT",
      `Cannot answer a request whose reply subject is ${reply.slice(0, 200)}; it must begin with _INBOX, or with _R_ if the bus renamed it`,
    );
  }
}

/** A message cannot be decoded. */
export class UndecodableMessageError extends TerminalError {
  readonly subject: string;

  constructor(subject: string, reason: string, options?: ErrorOptions) {
    super("UNDECODABLE", `Cannot decode a message on ${subject}: ${reason}`, options);
    this.subject = subject;
  }
}

/** A message is larger than any reader accepts. */
export class PayloadTooLargeError extends TerminalError {
  constructor(name: string, bytes: number, maxBytes: number) {
    super(
      "PAYLOAD_TOO_LARGE",
      `Cannot send a ${name} of ${bytes} bytes; a message may have at most ${maxBytes} bytes`,
    );
  }
}

/** Error codes of JetStream (server/errors.json of nats-server). */
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

/** Errors whose classes the client library does not export. JetStream is disabled on a server whose disk was full. */
const UNAVAILABLE_NAMES: ReadonlySet<string> = new Set(["NoRespondersError", "JetStreamNotEnabled"]);

/**
 * Translates an error of the client library.
 * @param action what failed, for the message, such as "publish" or "ask dataset".
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
  if (error instanceof Error && UNAVAILABLE_NAMES.has(error.name)) {
    return new BusUnavailableError(action, subject, { cause: error });
  }
  return error instanceof Error ? error : new BusUnavailableError(action, subject, { cause: error });
}
