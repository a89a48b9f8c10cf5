/** All routes of this service except the probes. */

import { createHttpApp } from "@hone/service-kit";
import type { Logger } from "@hone/telemetry";
import type { Hono } from "hono";
import { type ApiOptions, apiRoutes } from "./api-routes.ts";
import type { LiveFeed } from "./live-feed.ts";
import { liveRoutes } from "./live-routes.ts";
import { type OtlpRoutesOptions, otlpRoutes } from "./otlp-routes.ts";
import { pageAccess } from "./page-access.ts";
import { pageRoutes, SECURITY_HEADERS } from "./page-routes.ts";

export interface AppOptions {
  readonly api: ApiOptions;
  readonly otlp: OtlpRoutesOptions;
  readonly feed: LiveFeed;
  readonly logger: Logger;
  /** The token that readers of the page and senders of spans must present; undefined = none is required. */
  readonly token: string | undefined;
}

export async function createApp(options: AppOptions): Promise<Hono> {
  const app = createHttpApp(options.logger);
  app.use(async function secureHeaders(c, next) {
    await next();
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) c.header(name, value);
  });
  app.use(pageAccess(options.token));
  app.route("/", otlpRoutes(options.otlp));
  app.route("/api", liveRoutes(options.feed));
  app.route("/api", apiRoutes(options.api));
  app.route("/", await pageRoutes());
  return app;
}
