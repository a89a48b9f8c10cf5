/** The HTTP server of a service: it listens from the start, the service's routes join when there is a service. */

import type { Server } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import { createAdaptorServer } from "@hono/node-server";
import { Hono } from "hono";
import { ListenError } from "../errors.ts";
import type { HttpAddress, HttpHandler } from "../lifecycle/service.ts";
import { keepRoom } from "./connection-room.ts";
import { errorBody } from "./http-app.ts";
import { guardRequests } from "./request-guard.ts";

/** Limit of all headers of a request together; clients send only a few, and a trace context has at most 512 bytes. */
export const MAX_HEADER_BYTES = 16 * 1024;
/** A client that takes longer for its headers sends them to hold a connection, not to be answered. */
export const HEADERS_TIMEOUT_MS = 10_000;
/** The largest body takes a second on a slow network. */
export const REQUEST_TIMEOUT_MS = 30_000;
/** A connection that is over time is cut this much of it later at most. */
const CHECKS_PER_TIMEOUT = 5;
/** Four times the pages that a live feed takes; each holds a descriptor, of which a process has a few thousand. */
export const MAX_CONNECTIONS = 1_024;

export interface HttpServerOptions {
  readonly host: string;
  /** 0 = any free one. */
  readonly port: number;
  /** Answers from the start. @default nothing does */
  readonly health?: Hono;
  /** Names by which clients may call this server, beside addresses and localhost (request-guard.ts). @default none */
  readonly allowedHosts?: readonly string[];
  /** How long a client may take for its headers. @default 10_000 */
  readonly headersTimeoutMs?: number;
  /** @default 1_024 */
  readonly maxConnections?: number;
}

export interface HttpServer {
  readonly address: HttpAddress;
  /**
   * The service's routes, from now on.
   * @param hosts further names by which clients may call it.
   */
  serve(routes: HttpHandler, hosts?: readonly string[]): void;
  /** Takes no new connection, lets requests end, cuts what is left when the signal aborts. */
  close(signal: AbortSignal): Promise<void>;
}

/** @throws {ListenError} when the address cannot be had. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { host, port, headersTimeoutMs = HEADERS_TIMEOUT_MS } = options;
  let routes: HttpHandler | undefined;
  let allowedHosts = options.allowedHosts ?? [];
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.use(guardRequests(() => allowedHosts));
  if (options.health !== undefined) app.route("/", options.health);
  app.all("*", (c) => {
    if (routes !== undefined) return routes.fetch(c.req.raw, c.env);
    return c.json(errorBody("STARTING", "the service is starting; try again"), 503);
  });
  const server = createAdaptorServer({
    fetch: app.fetch,
    serverOptions: {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: headersTimeoutMs,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: headersTimeoutMs / CHECKS_PER_TIMEOUT,
    },
  }) as Server;
  keepRoom(server, options.maxConnections ?? MAX_CONNECTIONS);
  await listen(server, host, port);
  const bound = server.address();
  const boundPort = bound !== null && typeof bound === "object" ? bound.port : port;
  return {
    address: { host, port: boundPort, url: `http://${host.includes(":") ? `[${host}]` : host}:${boundPort}` },
    serve(handler, hosts = []) {
      allowedHosts = [...allowedHosts, ...hosts];
      routes = handler;
    },
    close: (signal) => closeServer(server, signal),
  };
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: Error) => reject(new ListenError(host, port, { cause }));
    server.once("error", onError);
    server.listen(port, host, () => {
      server.off("error", onError);
      resolve();
    });
  });
}

function closeServer(server: Server, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const cut = () => server.closeAllConnections();
    server.close(() => {
      signal.removeEventListener("abort", cut);
      resolve();
    });
    server.closeIdleConnections();
    if (signal.aborted) cut();
    else signal.addEventListener("abort", cut, { once: true });
  });
}
