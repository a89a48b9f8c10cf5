/**
 * Finds poison messages, which kill every process that works on them, and sets them aside without harm to other messages.
 *
 * L1: the first FREE_DELIVERIES deliveries are handled as usual, as unrelated kills, stops and lost connections also cause
 *     repeated deliveries.
 * L2: after those a message is handled alone in its lane. A mark is stored before and removed when the work ends, whether or
 *     not it succeeds. So a mark that is found means that a process died with this message.
 * L3: after MAX_DEATHS marks the message is set aside instead; if that kills a process too, it goes to DEAD.
 * L4: a message that waits while another one kills the process gets no mark, so it is never set aside for the other.
 */

import { TerminalError } from "@hone/core";
import type { Bus } from "../bus.ts";
import { UndecodableMessageError } from "../errors.ts";
import { latestMessage } from "../follow/follow-messages.ts";
import type { DeliveryInfo } from "./delivery.ts";

/** The bucket with the marks: key `<stream>.<durable>.<sequence>`, value the number of deaths so far. */
export const DEATHS_BUCKET = "DEATHS";
/** Marks expire after this time, when their messages are long gone. */
export const DEATHS_TTL_MS = 24 * 3_600_000;

/** Kills that have nothing to do with a message are rare; three of them while one message is in work do not occur. */
export const FREE_DELIVERIES = 3;
/** Number of deaths alone with a message after which it is not handled again; two may still be a coincidence. */
export const MAX_DEATHS = 3;

export interface LaneWork {
  /** The ordinary work. */
  readonly perform: () => Promise<void>;
  /** The work for a message that killed too often (L3). */
  readonly putAside: (deaths: number) => Promise<void>;
}

export class PoisonLane {
  readonly #bus: Bus;
  readonly #durable: string;
  #tail: Promise<void> = Promise.resolve();

  constructor(bus: Bus, durable: string) {
    this.#bus = bus;
    this.#durable = durable;
  }

  /** Works on a message, at once or when its turn in the lane comes. @throws whatever the work throws. */
  run(message: DeliveryInfo, work: LaneWork): Promise<void> {
    if (message.deliveries <= FREE_DELIVERIES) return work.perform(); // L1
    const turn = this.#tail.then(() => this.#alone(message, work));
    this.#tail = turn.catch(() => undefined);
    return turn;
  }

  async #marks(key: string): Promise<string | undefined> {
    const stored = await latestMessage(this.#bus, `KV_${DEATHS_BUCKET}`, `$KV.${DEATHS_BUCKET}.${key}`);
    return stored?.string(); // empty if the mark was removed
  }

  /** Works on one message while no other of the lane is in work (L2). */
  async #alone(message: DeliveryInfo, work: LaneWork): Promise<void> {
    const store = await this.#bus.keyValue.open(DEATHS_BUCKET);
    const key = `${message.stream}.${this.#durable}.${message.sequence}`;
    const deaths = Number((await this.#marks(key)) || 0);
    if (!Number.isSafeInteger(deaths)) {
      throw new TerminalError(
        "BROKEN_MARK",
        `The mark ${key} in the bucket ${DEATHS_BUCKET} is not a number; delete it`,
      );
    }
    if (deaths > MAX_DEATHS) {
      throw new UndecodableMessageError(message.subject, `the ${deaths} processes that worked on it died`);
    }
    await store.put(key, String(deaths + 1));
    try {
      await (deaths === MAX_DEATHS ? work.putAside(deaths) : work.perform()); // L3
    } catch (error) {
      await store.put(key, String(deaths)); // the process lives, so this attempt does not count as a death
      throw error;
    }
    await store.delete(key);
  }
}
