/**
 * Receives the replies to all requests of one connection with one wildcard subscription.
 *
 * R1: a request owns the token of its reply subject until it is closed; later messages are dropped.
 * R2: when the connection ends, every open request gets an error, as no reply can arrive any more.
 * R3: tokens cannot be guessed: a service that answered one request cannot find the reply subject of another.
 */

import { randomBytes } from "node:crypto";
import { ClosedConnectionError, type Msg, type NatsConnection } from "@nats-io/nats-core";

/** An open reply subject. */
export interface OpenReply {
  readonly subject: string;
  close(): void;
}

interface Receiver {
  readonly onMessage: (message: Msg) => void;
  readonly onLost: ((error: Error) => void) | undefined;
}

/**
 * Second token of the reply subjects, after the requester's prefix. Others may publish below it, but not on the other subjects
 * with that prefix, on which the client receives the messages of a stream, for example.
 */
export const ANSWER_TOKEN = "answer";
/**
 * Subjects for answers: those of clients, with `_INBOX_<service>` for a service, and those by which the server replaces them
 * when the request came from another account (bus-accounts.ts).
 */
const REPLY_SUBJECT = /^(?:_INBOX(?:_[A-Za-z0-9-]+)?|_R_)\../;
/** 96 random bits. */
const TOKEN_BYTES = 12;
/** Random bytes are taken from the system for this many tokens at once, as one call per token would be too slow. */
const TOKENS_AT_ONCE = 256;

/** Whether an answer may be published on a subject. The requester chooses it, and could choose that of an episode. */
export function isReplySubject(subject: string): boolean {
  return REPLY_SUBJECT.test(subject);
}

export class ReplyInbox {
  readonly #connection: NatsConnection;
  readonly #prefix: string;
  readonly #receivers = new Map<string, Receiver>();
  #isSubscribed = false;
  #random = Buffer.alloc(0);
  #used = 0;

  /** @param inboxPrefix first token of the reply subjects. @default _INBOX */
  constructor(connection: NatsConnection, inboxPrefix = "_INBOX") {
    this.#connection = connection;
    this.#prefix = `${inboxPrefix}.${ANSWER_TOKEN}.${this.#token()}.`;
  }

  /** Opens a reply subject; `close` releases it (R1). `onLost` is called when the connection ends (R2). */
  open(onMessage: (message: Msg) => void, onLost?: (error: Error) => void): OpenReply {
    if (!this.#isSubscribed) this.#subscribe();
    const token = this.#token();
    this.#receivers.set(token, { onMessage, onLost });
    return { subject: this.#prefix + token, close: () => void this.#receivers.delete(token) };
  }

  /** Makes a random token (R3). */
  #token(): string {
    if (this.#used >= this.#random.length) {
      this.#random = randomBytes(TOKEN_BYTES * TOKENS_AT_ONCE);
      this.#used = 0;
    }
    const begin = this.#used;
    this.#used += TOKEN_BYTES;
    return this.#random.toString("base64url", begin, this.#used);
  }

  #subscribe(): void {
    this.#isSubscribed = true;
    const { length } = this.#prefix;
    this.#connection.subscribe(`${this.#prefix}*`, {
      callback: (error, message) => {
        if (error === null) this.#receivers.get(message.subject.slice(length))?.onMessage(message);
        else this.#lose(error);
      },
    });
    void this.#connection.closed().then((error) => this.#lose(error ?? new ClosedConnectionError()));
  }

  #lose(error: Error): void {
    for (const { onLost } of [...this.#receivers.values()]) onLost?.(error);
  }
}
