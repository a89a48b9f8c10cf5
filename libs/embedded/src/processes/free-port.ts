/** Finds ports of this machine that are not in use. */

import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** Hone's embedded servers listen only here, so that nothing outside the machine can reach them. */
export const LOOPBACK = "127.0.0.1";

/** Below the range that systems use for outgoing connections: Linux begins at 32768, macOS and Windows at 49152. */
const PORTS = { from: 20_000, to: 32_767 } as const;
const MAX_TRIES = 100;

/**
 * @returns a port that is not in use, and that no outgoing connection can take before the caller listens on it. It is not one
 * of the well-known ports of other servers (4222, 5432).
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = randomInt(PORTS.from, PORTS.to + 1);
    if (await isPortFree(port)) return port;
  }
  const port = await tryListen(0);
  if (port === undefined)
    throw new Error("No port is free on the loopback address; close programs that listen on many ports");
  return port;
}

/** Whether no server listens on this port at the moment. */
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
