/**
 * Replies to the requests of one connection: one wildcard subscription, however many requests are open.
 *
 * R1: a request owns the token of its reply subject until it is closed; what arrives later is dropped.
 * R2: when the connection ends, every open request is told: nothing can arrive any more.
 * R3: tokens cannot be guessed: whoever has answered one request knows nothing of the subject of another.
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
 * Second token of the reply subjects, after the prefix of whoever asks: others may publish below it, and not to what the
 * client itself hears below the same prefix, such as the messages of a stream.
 */
export const ANSWER_TOKEN = "answer";
/**
 * Subjects on which answers are heard: what clients make, with `_INBOX_<service>` for a service, and what the server makes of
 * them where the question came from another account (bus-accounts.ts).
 */
const REPLY_SUBJECT = /^(?:_INBOX(?:_[A-Za-z0-9-]+)?|_R_)\../;
/** 96 random bits. */
const TOKEN_BYTES = 12;
/** Randomness comes from the system for so many tokens at once: a call for each would cost more than the rest. */
const TOKENS_AT_ONCE = 256;

/** Whether an answer may be published there. Whoever asks chooses the subject, and could choose that of an episode. */
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

  /** Opens a reply subject; `close` gives it back (R1). `onLost` is told when the connection ends (R2). */
  open(onMessage: (message: Msg) => void, onLost?: (error: Error) => void): OpenReply {
    if (!this.#isSubscribed) this.#subscribe();
    const token = this.#token();
    this.#receivers.set(token, { onMessage, onLost });
    return { subject: this.#prefix + token, close: () => void this.#receivers.delete(token) };
  }

  /** R3 */
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
