/**
 * A delivered message in work, without its contents: its position, and where its acknowledgement is sent.
 *
 * D1: it keeps neither body nor headers. A body is a view on the network buffer that it arrived in, so a body of a few hundred
 *     bytes would keep several KiB in memory while its work lasts, which matters with 5,000 messages in work.
 * D2: after the final answer to a message (ack, nak or term) nothing more is sent about it.
 * D3: over a closed connection nothing can be sent, and need not be: the server delivers the message to another process.
 *
 * The protocol is JetStream's: https://docs.nats.io/reference/reference-protocols/nats_api_reference (acknowledging).
 */

import type { JsMsg } from "@nats-io/jetstream";
import { ClosedConnectionError, DrainingConnectionError, nanos } from "@nats-io/nats-core";
import type { Bus } from "../bus.ts";

export interface DeliveryInfo {
  readonly stream: string;
  readonly subject: string;
  /** Position in the stream. */
  readonly sequence: number;
  /** When the stream stored it: Unix milliseconds, by the clock of the bus. */
  readonly storedAtMs: number;
  /** 1 for the first delivery. */
  readonly deliveries: number;
}

export class Delivery implements DeliveryInfo {
  readonly stream: string;
  readonly subject: string;
  readonly sequence: number;
  readonly storedAtMs: number;
  readonly deliveries: number;
  readonly #bus: Bus;
  readonly #reply: string;
  #isOver = false;

  constructor(bus: Bus, message: JsMsg) {
    const { stream, streamSequence, deliveryCount, timestampNanos } = message.info;
    this.#bus = bus;
    this.#reply = replyOf(message);
    this.stream = stream;
    this.subject = message.subject;
    this.sequence = streamSequence;
    this.storedAtMs = Math.floor(timestampNanos / 1e6);
    this.deliveries = deliveryCount;
  }

  /** Says that its work is done. */
  ack(): void {
    this.#end("+ACK");
  }

  /** Says that its work is not done: it is delivered again, at once or after a pause. */
  nak(pauseMs?: number): void {
    this.#end(pauseMs === undefined ? "-NAK" : `-NAK ${JSON.stringify({ delay: nanos(pauseMs) })}`);
  }

  /** Says that it must not be delivered again. No reason is sent, as servers before 2.10 ignore a term with a reason. */
  term(): void {
    this.#end("+TERM");
  }

  /** Says that its work goes on: the acknowledgement time starts again. */
  working(): void {
    if (!this.#isOver) this.#say("+WPI");
  }

  /** Sends the final answer, once (D2). */
  #end(word: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#say(word);
  }

  /** Sends an answer, unless the connection is closed (D3). */
  #say(word: string): void {
    try {
      this.#bus.connection.publish(this.#reply, word);
    } catch (error) {
      if (error instanceof ClosedConnectionError || error instanceof DrainingConnectionError) return;
      throw error;
    }
  }
}

/** @returns the reply subject of a JetStream message, which its interface does not declare. */
function replyOf(message: JsMsg): string {
  if ("reply" in message && typeof message.reply === "string") return message.reply;
  throw new TypeError("The message has no reply subject, so it did not come from a stream");
}
