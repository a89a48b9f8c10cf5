/** All routes of this service except the probes. */

import { createHttpApp } from "@hone/service-kit";
import type { Logger } from "@hone/telemetry";
import type { Hono } from "hono";
import type { PersonsActions } from "../domain/people/persons-actions.ts";
import { actionRoutes } from "./api/action-routes.ts";
import { type ApiOptions, apiRoutes } from "./api/api-routes.ts";
import { notesRoutes } from "./api/notes-routes.ts";
import { writeAccess } from "./api/write-access.ts";
import type { LiveFeed } from "./live-feed.ts";
import { liveRoutes } from "./live-routes.ts";
import { type OtlpRoutesOptions, otlpRoutes } from "./otlp-routes.ts";
import { pageAccess } from "./page-access.ts";
import { pageRoutes, SECURITY_HEADERS } from "./page-routes.ts";

export interface AppOptions {
  readonly api: ApiOptions;
  readonly actions: PersonsActions;
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
  const { store, tokenTexts } = options.api;
  const hasToken = options.token !== undefined;
  app.use("/api/*", writeAccess(hasToken));
  app.use("/api/*", async function neverCached(c, next) {
    await next();
    c.header("cache-control", "no-store");
  });
  app.route("/api", notesRoutes(store, options.logger));
  app.route(
    "/api",
    actionRoutes({ actions: options.actions, store, tokenTexts, logger: options.logger, hasToken }),
  );
  app.route("/api", apiRoutes(options.api));
  app.route("/", await pageRoutes());
  return app;
}
