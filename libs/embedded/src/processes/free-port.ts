/** Ports of this machine that nobody listens on. */

import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** Hone's servers listen here only: nothing outside the machine shall reach an embedded bus or database. */
export const LOOPBACK = "127.0.0.1";

/** Below what systems give to connections that go out: Linux begins at 32768, macOS and Windows at 49152. */
const PORTS = { from: 20_000, to: 32_767 } as const;
const MAX_TRIES = 100;

/**
 * A port on which nobody listens, and that no connection which goes out takes before whoever asked for it listens there. It is
 * none of the well-known ports of other servers (4222, 5432).
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = randomInt(PORTS.from, PORTS.to + 1);
    if (await isPortFree(port)) return port;
  }
  const port = await tryListen(0);
  if (port === undefined)
    throw new Error("no port is free on the loopback address; close programs that listen on many ports");
  return port;
}

/** Whether nobody listens on this port right now. */
export async function isPortFree(port: number): Promise<boolean> {
  return (await tryListen(port)) !== undefined;
}

function tryListen(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen({ port, host: LOOPBACK }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" ? (address?.port ?? undefined) : undefined));
    });
  });
}
