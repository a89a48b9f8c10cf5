/**
 * Keeps room for the next client. Each connection holds a file descriptor, and a process has a few thousand, so their number
 * is limited. A server that only refused new connections at the limit could be blocked for everybody, its probes included,
 * by a client that begins requests and never finishes them.
 *
 * R1: at the limit, the connection that has waited longest without a whole request is closed: it is idle, or has sent only
 *     a part of its headers or of its body.
 * R2: a connection whose request has arrived and is being answered is never closed for another one. If all are in that
 *     state, the new one is refused.
 */

import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";

export function keepRoom(server: Server, maxConnections: number): void {
  /** In the order in which they were opened, each with the request that it sends or that is being answered. */
  const open = new Map<Socket, IncomingMessage | undefined>();
  server.on("connection", (socket: Socket) => {
    if (open.size >= maxConnections) {
      const waiting = firstWaiting(open);
      (waiting ?? socket).destroy();
      if (waiting === undefined) return; // R2
      open.delete(waiting); // R1
    }
    open.set(socket, undefined);
    socket.once("close", () => open.delete(socket));
  });
  server.on("request", (request, response) => {
    const { socket } = request;
    if (!open.has(socket)) return;
    // It moves to the end of the queue, as it has just done something.
    open.delete(socket);
    open.set(socket, request);
    response.once("close", () => {
      if (open.has(socket)) open.set(socket, undefined);
    });
  });
}

function firstWaiting(open: ReadonlyMap<Socket, IncomingMessage | undefined>): Socket | undefined {
  for (const [socket, request] of open) if (request === undefined || !request.complete) return socket;
  return undefined;
}
