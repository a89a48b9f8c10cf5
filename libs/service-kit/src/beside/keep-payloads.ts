/** Removes large payloads that nobody needs any more, for services that may not do it. */

import { pause } from "@hone/core";
import { type Bus, removeOldPayloads } from "@hone/messaging";
import type { Logger } from "@hone/telemetry";

/** Short against the shortest life of a payload. A look is one question for each bucket, and young ones are not read. */
const LOOK_EVERY_MS = 60_000;

/** Looks for them until the signal aborts. */
export async function keepPayloads(
  bus: Bus,
  { signal, logger }: { readonly signal: AbortSignal; readonly logger: Logger },
): Promise<void> {
  for (;;) {
    await pause(LOOK_EVERY_MS, signal);
    if (signal.aborted) return;
    try {
      const removed = await removeOldPayloads(bus);
      if (removed > 0) logger.debug("large payloads that nobody needs are removed", { removed });
    } catch (error) {
      logger.debug("large payloads could not be looked at", { error });
    }
  }
}
