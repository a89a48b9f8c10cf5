/** A TCP relay in front of a server, whose connections a test can break. */

import { connect, createServer, type Socket } from "node:net";

export interface Relay extends AsyncDisposable {
  readonly port: number;
  /** Resets every connection (RST, as when the other machine dies); new ones are accepted. */
  reset(): void;
  /** Closes every connection regularly (FIN), as a server does when it stops. */
  end(): void;
  /** Stops forwarding in both directions without closing anything, like a network that drops packets. */
  freeze(): void;
}

/** @param options.port 0 or absent = any free port. */
export async function startRelay(options: {
  readonly target: number;
  readonly port?: number;
}): Promise<Relay> {
  const sockets = new Set<Socket>();
  let isFrozen = false;
  const server = createServer((inner) => {
    const outer = connect(options.target, "127.0.0.1");
    for (const [from, to] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      sockets.add(from);
      from.on("error", () => from.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.on("data", (chunk) => {
        if (!isFrozen) to.write(chunk);
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
  const address = server.address();
  const reset = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    port: address !== null && typeof address === "object" ? address.port : 0,
    reset,
    end() {
      for (const socket of sockets) socket.end();
    },
    freeze() {
      isFrozen = true;
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      reset();
      await closed;
    },
  };
}
