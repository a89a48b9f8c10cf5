/**
 * The routes of this service besides the probes: the OpenAI API under /v1, and /health.
 *
 *   GET  /health                    200 while this replica takes completions, 503 when it stops
 *   GET  /engine/metrics            metrics of the inference server beside this gateway
 *   GET  /v1/models[/:model]
 *   POST /v1/chat/completions
 *   POST /v1/completions
 */

import { ApiRequestError } from "@hone/service-kit";
import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { failureFrom, failureOf, INTERNAL_FAILURE } from "./api-error.ts";
import { authorize } from "./authorize.ts";
import { type CompletionRoutesOptions, completionRoutes } from "./completion-routes.ts";
import { engineMetrics, type MeasuredServer } from "./engine-metrics.ts";
import { modelRoutes } from "./model-routes.ts";

/** About 250,000 tokens of English. Other requests wait some tenths of a second while such a body is read and tokenized. */
const MAX_BODY_BYTES = 1_048_576;

export interface AppOptions extends CompletionRoutesOptions {
  /** Bearer token of the API; undefined = none is needed. */
  readonly apiKey: string | undefined;
  /** The inference server beside this gateway; undefined = the engine is embedded. */
  readonly server: MeasuredServer | undefined;
}

export function createApp(options: AppOptions): Hono {
  const { apiKey, logger, models, open, server } = options;
  const app = new Hono();
  app.notFound((c) =>
    c.json(
      failureFrom(404, `There is no route ${c.req.method} ${c.req.path}`, "invalid_request_error").body,
      404,
    ),
  );
  app.onError((error, c) => {
    const failure = failureOf(error);
    if (failure === undefined && !c.req.raw.signal.aborted) {
      logger.error("an HTTP request failed", { method: c.req.method, path: c.req.path, error });
    }
    const { status, body, headers } = failure ?? INTERNAL_FAILURE;
    return c.json(body, status, headers);
  });
  app.get("/health", (c) =>
    c.json({ status: open.isDraining ? "stopping" : "ok" }, open.isDraining ? 503 : 200),
  );
  app.route("/engine", engineMetrics(server));
  app.use("/v1/*", authorize(apiKey));
  app.use("/v1/*", bodyLimit({ maxSize: MAX_BODY_BYTES, onError: refuseBody }));
  app.route("/v1", modelRoutes(models));
  app.route("/v1", completionRoutes(options));
  return app;
}

function refuseBody(): never {
  throw new ApiRequestError(`The body is too large; it must have at most ${MAX_BODY_BYTES} bytes`, {
    status: 413,
  });
}
