/** When to stop trying to store a message. */

import { TerminalError } from "@hone/core";
import type { Logger } from "@hone/telemetry";

/** A fault in this program, which a newer one may not have, gets some time; a message that cannot be stored at all does not
 * hold back the purge of its stream for ever. */
const MAX_DELIVERIES = 10;

/**
 * Waits for a write. One that is refused for good, again and again, is given up: the message counts as done and is missing
 * from the views, which are no record that training reads.
 * @throws what the write throws, as long as another try makes sense.
 */
export async function storedOrGivenUp(
  item: { readonly subject: string; readonly sequence: number; readonly deliveries: number },
  write: Promise<void>,
  logger: Logger,
): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!(error instanceof TerminalError) || item.deliveries < MAX_DELIVERIES) throw error;
    const { subject, sequence, deliveries } = item;
    logger.error("given up a message that cannot be stored", { subject, sequence, deliveries, error });
  }
}
