/**
 * Replies to the requests of one connection: one wildcard subscription, however many requests are open.
 *
 * R1: a request owns the token of its reply subject until it is closed; what arrives later is dropped.
 * R2: when the connection ends, every open request is told: nothing can arrive any more.
 */

import { ClosedConnectionError, createInbox, type Msg, type NatsConnection } from "@nats-io/nats-core";

/** An open reply subject. */
export interface OpenReply {
  readonly subject: string;
  close(): void;
}

interface Receiver {
  readonly onMessage: (message: Msg) => void;
  readonly onLost: ((error: Error) => void) | undefined;
}

export class ReplyInbox {
  readonly #connection: NatsConnection;
  readonly #prefix: string;
  readonly #receivers = new Map<string, Receiver>();
  #isSubscribed = false;
  #next = 0;

  /** @param inboxPrefix first token of the reply subjects. @default _INBOX */
  constructor(connection: NatsConnection, inboxPrefix?: string) {
    this.#connection = connection;
    this.#prefix = `${createInbox(inboxPrefix)}.`;
  }

  /** Opens a reply subject; `close` gives it back (R1). `onLost` is told when the connection ends (R2). */
  open(onMessage: (message: Msg) => void, onLost?: (error: Error) => void): OpenReply {
    if (!this.#isSubscribed) this.#subscribe();
    const token = String(this.#next++);
    this.#receivers.set(token, { onMessage, onLost });
    return { subject: this.#prefix + token, close: () => void this.#receivers.delete(token) };
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
