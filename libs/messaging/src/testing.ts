/** A bus with a NATS server of its own, for tests. */

import { startNats } from "@hone/testing";
import { type Bus, connectBus } from "./bus.ts";
import { ensureTopology } from "./streams/streams.ts";

/** A connection that may do everything. Closing it stops its server too. */
export interface TestBus extends Bus, AsyncDisposable {
  /** Its `url` holds the name and password of a user that may do everything. */
  readonly server: Awaited<ReturnType<typeof startNats>>;
}

/** Starts a server, and makes all streams on it. */
export async function startBus(): Promise<TestBus> {
  const server = await startNats();
  try {
    const bus = await connectBus({ url: server.url, name: "test" });
    await ensureTopology(bus);
    const close = async () => {
      await bus.close();
      await server.stop();
    };
    return { ...bus, server, close, [Symbol.asyncDispose]: close };
  } catch (error) {
    await server.stop();
    throw error;
  }
}
