/** The time by the clock of the bus, which dates the messages of its streams. */

import type { Bus } from "../bus.ts";
import { BusUnavailableError, translateBusError } from "../errors.ts";
import { latestMessage } from "../follow/follow-messages.ts";
import { BucketName } from "../streams/streams.ts";
import { CLOCK_KEY, CLOCK_SUBJECT, REWARDS_STREAM } from "./reward-keys.ts";

/**
 * Asks for the time of the bus. It writes a key of REWARDS and reads when that was stored, as servers before 2.10 do not tell
 * their time otherwise; so only the judge may call it.
 * @returns Unix milliseconds.
 * @throws {BusUnavailableError} when the server does not answer.
 */
export async function busTimeMs(bus: Bus): Promise<number> {
  try {
    const store = await bus.keyValue.open(BucketName.rewards);
    await store.put(CLOCK_KEY, new Uint8Array());
    // Another judge may have written it meanwhile, which makes the time only more recent.
    const stored = await latestMessage(bus, REWARDS_STREAM, CLOCK_SUBJECT);
    if (stored === undefined) throw new BusUnavailableError("tell its time", CLOCK_SUBJECT);
    return stored.time.getTime();
  } catch (error) {
    throw translateBusError(error, "tell its time", CLOCK_SUBJECT);
  }
}
