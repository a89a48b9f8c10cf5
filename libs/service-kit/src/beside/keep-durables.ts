/** Keeps the shared consumers of the streams there, for services that may not make them. */

import { pause } from "@hone/core";
import { type Bus, makeDurables } from "@hone/messaging";
import type { Logger } from "@hone/telemetry";

/** Whoever waits for a consumer asks again several times a second; five small questions each. */
const LOOK_EVERY_MS = 5_000;

/** Looks at them for as long as the signal allows. */
export async function keepDurables(
  bus: Bus,
  { signal, logger }: { readonly signal: AbortSignal; readonly logger: Logger },
): Promise<void> {
  while (!signal.aborted) {
    try {
      await makeDurables(bus);
    } catch (error) {
      logger.debug("the shared consumers could not be looked at", { error });
    }
    await pause(LOOK_EVERY_MS, signal);
  }
}
