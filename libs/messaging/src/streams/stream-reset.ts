/**
 * Detects streams whose positions started over at 1.
 *
 * If a server is killed while it drops the last messages of a stream, it may have lost the stream's last position when it
 * starts again (seen with nats-server 2.9.10). Messages stored afterwards are not lost, but a reader that continues from its
 * old position would wait until the stream reaches it, which can take hours.
 */

import type { Bus } from "../bus.ts";

/**
 * @returns whether `next` lies beyond the stream's next position, so that a reader would wait for it in vain.
 * @throws the server's error when it does not return the stream's state.
 */
export async function isBeyondStream(bus: Bus, stream: string, next: number): Promise<boolean> {
  if (next <= 1) return false;
  const { state } = await bus.manager.streams.info(stream);
  return next > state.last_seq + 1;
}
