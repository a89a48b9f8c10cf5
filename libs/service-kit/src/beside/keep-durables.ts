/** Makes the shared consumers of the streams again where one is missing, for services that may not make them. */

import { pause } from "@hone/core";
import { type Bus, makeDurables } from "@hone/messaging";
import type { Logger } from "@hone/telemetry";

/** A look is five small questions to the server; who waits for a consumer asks several times a second. */
const LOOK_EVERY_MS = 5_000;

/** Looks at them until the signal aborts. */
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
