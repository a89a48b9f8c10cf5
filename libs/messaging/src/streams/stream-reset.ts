/**
 * Streams that began again at 1.
 *
 * A server that is killed in the moment in which it drops the last messages of a stream may have forgotten, when it is
 * back, how far the stream had come (seen with nats-server 2.9.10). Nothing that was stored afterwards is lost, but readers
 * that go by positions would wait for numbers that the stream reaches hours later.
 */

import type { Bus } from "../bus.ts";

/**
 * Whether a reader that wants `next` waits for a position that cannot be the stream's next one.
 * @throws what the server answers when the stream cannot be looked at.
 */
export async function isBeyondStream(bus: Bus, stream: string, next: number): Promise<boolean> {
  if (next <= 1) return false;
  const { state } = await bus.manager.streams.info(stream);
  return next > state.last_seq + 1;
}
