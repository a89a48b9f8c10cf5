/** When to stop trying to store a message. */

import { TerminalError } from "@hone/core";
import type { Logger } from "@hone/telemetry";

/** Most deliveries of a message that cannot be stored. A bug of this program may be corrected meanwhile, but the message must
 * not keep its stream from being purged for ever. */
const MAX_DELIVERIES = 10;

/**
 * Waits for a write. When the write fails with a terminal error at the last delivery, the message is given up: it counts as
 * done and is missing from the views. Training does not read them.
 * @throws the error of the write, as long as it should be tried again.
 */
export async function waitOrGiveUp(
  item: { readonly subject: string; readonly sequence: number; readonly deliveries: number },
  write: Promise<void>,
  logger: Logger,
): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!(error instanceof TerminalError) || item.deliveries < MAX_DELIVERIES) throw error;
    const { subject, sequence, deliveries } = item;
    logger.error("a message was given up, as it cannot be stored", { subject, sequence, deliveries, error });
  }
}
