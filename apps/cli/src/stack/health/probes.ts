/**
 * Checks whether a process answers in its own protocol. Only an answer counts, because the kernel accepts connections even for
 * a stopped process.
 */

import { connect } from "node:net";
import { readText } from "@hone/core";

/** Several times as long as a busy process takes; `hone status` waits at most this long. */
export const ANSWER_TIMEOUT_MS = 2_000;
/** Largest answer: that of /metrics is the longest, but another program may have taken the port. */
export const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/** PostgreSQL's SSLRequest: length 8, code 80877103. The server answers one byte, S or N. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);

/** Any answer of a service's /livez. */
export async function answersHttp(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/livez`, {
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    });
    await readText(response, MAX_ANSWER_BYTES);
    return true;
  } catch {
    return false; // down, stopped, or being restarted
  }
}

/** A NATS server sends its greeting first. */
export function answersNats(url: string): Promise<boolean> {
  return sendsBytes(url, 4_222);
}

export function answersPostgres(url: string): Promise<boolean> {
  return sendsBytes(url, 5_432, SSL_REQUEST);
}

function sendsBytes(url: string, defaultPort: number, question?: Buffer): Promise<boolean> {
  // A cluster has several addresses; only the first is asked.
  const [first = ""] = url.split(",");
  const { hostname, port } = new URL(first.includes("://") ? first : `nats://${first}`);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: hostname, port: Number(port) || defaultPort, timeout: ANSWER_TIMEOUT_MS });
  const timer = setTimeout(() => resolve(false), ANSWER_TIMEOUT_MS);
  socket.once("connect", () => {
    if (question !== undefined) socket.write(question);
  });
  socket.once("data", () => resolve(true));
  socket.once("error", () => resolve(false));
  socket.once("close", () => resolve(false));
  return promise.finally(() => {
    clearTimeout(timer);
    socket.destroy();
  });
}
