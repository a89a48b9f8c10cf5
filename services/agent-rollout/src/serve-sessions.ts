/** Serves sessions without the rest of the service, on a free port of this machine. */

import { startHttpServer } from "@hone/service-kit";
import type { Logger } from "@hone/telemetry";
import { SessionHost } from "./domain/sessions/session-host.ts";
import { sessionRoutes } from "./http/session-routes.ts";

/** Disposing of it ends the server. */
export interface ServedSessions extends AsyncDisposable {
  readonly sessions: SessionHost;
}

export async function serveSessions(logger: Logger): Promise<ServedSessions> {
  const server = await startHttpServer({ host: "127.0.0.1", port: 0 });
  const sessions = new SessionHost(server.address.url);
  server.serve(sessionRoutes({ sessions, logger }));
  return { sessions, [Symbol.asyncDispose]: () => server.close(AbortSignal.abort()) };
}
