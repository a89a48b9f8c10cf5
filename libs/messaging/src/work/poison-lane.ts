/**
 * Messages that kill whoever works on them: they are found, and put aside, without harm to the others.
 *
 * L1: the first FREE_DELIVERIES deliveries are worked on as always: kills, stops and lost connections repeat them too.
 * L2: after those a message is worked on while no other message of this lane is; a mark is stored before, and taken away
 *     when the work ends, however it ends. A mark that is found is therefore the death of a process with this message.
 * L3: after MAX_DEATHS marks the message is put aside instead; if that kills too, it goes to DEAD unread.
 * L4: a message that is only in bad company gets no marks while it waits, so it is never put aside for another one.
 */

import { TerminalError } from "@hone/core";
import type { Bus } from "../bus.ts";
import { UndecodableMessageError } from "../errors.ts";
import { latestMessage } from "../follow/follow-messages.ts";
import type { DeliveryInfo } from "./delivery.ts";

/** Bucket with the marks: key `<stream>.<durable>.<sequence>`, value the number of deaths so far. */
export const DEATHS_BUCKET = "DEATHS";
/** A mark of a message that is long gone is forgotten. */
export const DEATHS_TTL_MS = 24 * 3_600_000;

/** Kills that have nothing to do with the message are rare: three within the life of one message are not seen. */
export const FREE_DELIVERIES = 3;
/** Deaths alone with a message after which it is not worked on again; twice may still be bad luck. */
export const MAX_DEATHS = 3;

export interface LaneWork {
  /** The ordinary work. */
  readonly perform: () => Promise<void>;
  /** What is done instead with a message that killed too often (L3). */
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

  /** Works on a message, at once or when its turn in the lane comes. @throws what the work throws. */
  run(message: DeliveryInfo, work: LaneWork): Promise<void> {
    if (message.deliveries <= FREE_DELIVERIES) return work.perform(); // L1
    const turn = this.#tail.then(() => this.#alone(message, work));
    this.#tail = turn.catch(() => undefined);
    return turn;
  }

  async #marks(key: string): Promise<string | undefined> {
    const stored = await latestMessage(this.#bus, `KV_${DEATHS_BUCKET}`, `$KV.${DEATHS_BUCKET}.${key}`);
    return stored?.string(); // empty where the mark was taken away
  }

  /** L2 */
  async #alone(message: DeliveryInfo, work: LaneWork): Promise<void> {
    const store = await this.#bus.keyValue.open(DEATHS_BUCKET);
    const key = `${message.stream}.${this.#durable}.${message.sequence}`;
    const deaths = Number((await this.#marks(key)) || 0);
    if (!Number.isSafeInteger(deaths)) {
      throw new TerminalError(
        "BROKEN_MARK",
        `Cannot read a mark as it must be a count: current value is ${key}`,
      );
    }
    if (deaths > MAX_DEATHS) {
      throw new UndecodableMessageError(message.subject, `the ${deaths} processes that took it died with it`);
    }
    await store.put(key, String(deaths + 1));
    try {
      await (deaths === MAX_DEATHS ? work.putAside(deaths) : work.perform()); // L3
    } catch (error) {
      await store.put(key, String(deaths)); // alive: this try was no death
      throw error;
    }
    await store.delete(key);
  }
}
