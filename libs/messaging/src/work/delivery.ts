/**
 * What is left of a delivered message while it is worked on: where it stands, and where its acknowledgement goes.
 *
 * D1: it keeps neither body nor headers. A body lies in the piece of the connection's stream that it arrived in, so one of
 *     a few hundred bytes holds several KiB, for as long as its work takes; with 5,000 messages in work that is felt.
 * D2: after the last word on a message (ack, nak, term) nothing more is said of it.
 * D3: over a connection that has ended nothing can be said, and need not: the server gives the message to another.
 *
 * The words are those of JetStream: https://docs.nats.io/reference/reference-protocols/nats_api_reference (acknowledging).
 */

import type { JsMsg } from "@nats-io/jetstream";
import { ClosedConnectionError, DrainingConnectionError, nanos } from "@nats-io/nats-core";
import type { Bus } from "../bus.ts";

export interface DeliveryInfo {
  readonly stream: string;
  readonly subject: string;
  /** Position in the stream. */
  readonly sequence: number;
  /** 1 the first time. */
  readonly deliveries: number;
}

export class Delivery implements DeliveryInfo {
  readonly stream: string;
  readonly subject: string;
  readonly sequence: number;
  readonly deliveries: number;
  readonly #bus: Bus;
  readonly #reply: string;
  #isOver = false;

  constructor(bus: Bus, message: JsMsg) {
    const { stream, streamSequence, deliveryCount } = message.info;
    this.#bus = bus;
    this.#reply = replyOf(message);
    this.stream = stream;
    this.subject = message.subject;
    this.sequence = streamSequence;
    this.deliveries = deliveryCount;
  }

  /** Its work is done. */
  ack(): void {
    this.#end("+ACK");
  }

  /** Its work is not done: it comes again, at once or after a pause. */
  nak(pauseMs?: number): void {
    this.#end(pauseMs === undefined ? "-NAK" : `-NAK ${JSON.stringify({ delay: nanos(pauseMs) })}`);
  }

  /** It is not to come again. No reason goes along: a server before 2.10 takes no notice of one that has it. */
  term(): void {
    this.#end("+TERM");
  }

  /** Its work goes on: the server waits from now on again. */
  working(): void {
    if (!this.#isOver) this.#say("+WPI");
  }

  /** D2 */
  #end(word: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#say(word);
  }

  /** D3 */
  #say(word: string): void {
    try {
      this.#bus.connection.publish(this.#reply, word);
    } catch (error) {
      if (error instanceof ClosedConnectionError || error instanceof DrainingConnectionError) return;
      throw error;
    }
  }
}

/** JetStream's messages have it, though their interface does not name it. */
function replyOf(message: JsMsg): string {
  if ("reply" in message && typeof message.reply === "string") return message.reply;
  throw new TypeError("a message of a stream says where its acknowledgement goes");
}
