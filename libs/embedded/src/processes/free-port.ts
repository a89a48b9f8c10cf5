/** Ports of this machine that nobody listens on. */

import { createServer } from "node:net";

/** Hone's servers listen here only: nothing outside the machine shall reach an embedded bus or database. */
export const LOOPBACK = "127.0.0.1";

/** A free port from the system's own range, so never one of the well-known ports of other servers (4222, 5432). */
export async function freePort(): Promise<number> {
  const port = await tryListen(0);
  if (port === undefined)
    throw new Error("Cannot find a free port as the system has none: current value is 0");
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
