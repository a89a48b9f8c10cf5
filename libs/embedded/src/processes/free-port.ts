/** Finds ports of this machine that are not in use. */

import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";

/** Hone's embedded servers listen only here, so that nothing outside the machine can reach them. */
export const LOOPBACK = "127.0.0.1";

/** Below the range for outgoing connections: Linux begins at 32768 unless it is set otherwise, macOS and Windows at 49152. */
const PORTS = { from: 20_000, to: 32_767 } as const;
/** Where Linux says which ports outgoing connections use; some containers begin at 16000. */
const OUTGOING_FILE = "/proc/sys/net/ipv4/ip_local_port_range";
/** Fewer ports than this below the outgoing ones are not worth a choice. */
const FEWEST_PORTS = 1_000;
const LOWEST_PORT = 10_000;
const MAX_TRIES = 100;

/**
 * @returns a port that is not in use, and that no outgoing connection can take before the caller listens on it. It is not one
 * of the well-known ports of other servers (4222, 5432).
 */
export async function freePort(): Promise<number> {
  const { from, to } = portsBelow(firstOutgoingPort());
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = randomInt(from, to + 1);
    if (await isPortFree(port)) return port;
  }
  const port = await tryListen(0);
  if (port === undefined)
    throw new Error("No port is free on the loopback address; close programs that listen on many ports");
  return port;
}

/** The ports to choose from if outgoing connections use those from `firstOutgoing` on. */
export function portsBelow(firstOutgoing: number | undefined): {
  readonly from: number;
  readonly to: number;
} {
  if (firstOutgoing === undefined || firstOutgoing > PORTS.to) return PORTS;
  if (firstOutgoing >= PORTS.from + FEWEST_PORTS) return { from: PORTS.from, to: firstOutgoing - 1 };
  return firstOutgoing >= LOWEST_PORT + FEWEST_PORTS ? { from: LOWEST_PORT, to: firstOutgoing - 1 } : PORTS;
}

/** @returns undefined where the system does not say it. */
function firstOutgoingPort(): number | undefined {
  try {
    const first = Number.parseInt(readFileSync(OUTGOING_FILE, "utf8"), 10);
    return Number.isNaN(first) ? undefined : first;
  } catch {
    return undefined; // macOS and Windows
  }
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
