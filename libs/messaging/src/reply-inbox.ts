/**
 * Streamed replies: one wildcard subscription per connection, however many requests are open.
 *
 * R1: a request owns the token of its reply subject until it is closed; what arrives later is dropped.
 */

import { createInbox, type Msg, type NatsConnection } from "@nats-io/nats-core";

export class ReplyInbox {
  readonly #connection: NatsConnection;
  readonly #prefix: string;
  readonly #handlers = new Map<string, (message: Msg) => void>();
  #isSubscribed = false;
  #next = 0;

  constructor(connection: NatsConnection) {
    this.#connection = connection;
    this.#prefix = createInbox();
  }

  /** Opens a reply subject; `close` gives it back (R1). */
  open(onMessage: (message: Msg) => void): { subject: string; close(): void } {
    if (!this.#isSubscribed) {
      this.#isSubscribed = true;
      this.#connection.subscribe(`${this.#prefix}.*`, {
        callback: (error, message) => {
          if (error !== null) return;
          this.#handlers.get(message.subject.slice(this.#prefix.length + 1))?.(message);
        },
      });
    }
    const token = String(this.#next++);
    this.#handlers.set(token, onMessage);
    return { subject: `${this.#prefix}.${token}`, close: () => void this.#handlers.delete(token) };
  }
}
