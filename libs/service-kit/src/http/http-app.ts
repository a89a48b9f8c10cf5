/** The Hono app to which a service adds its routes: all errors have one form and one handler. */

import { describeError, InvalidInputError, RetryableError } from "@hone/core";
import { type Logger, redactText } from "@hone/telemetry";
import { Hono } from "hono";
import { HTTPException } from "hono/http-exception";

/** Body of every error answer. */
export interface HttpErrorBody {
  readonly error: { readonly code: string; readonly message: string };
}

/**
 * An app whose failures answer `{ error: { code, message } }`: 400 for wrong input, 503 for what may work later,
 * 500 for the rest, whose text stays in the log.
 */
export function createHttpApp(logger: Logger): Hono {
  const app = new Hono();
  app.notFound((c) => c.json(errorBody("NOT_FOUND", `there is nothing at ${c.req.path}`), 404));
  app.onError((error, c) => {
    if (error instanceof HTTPException) return c.json(errorBody("HTTP", error.message), error.status);
    if (error instanceof InvalidInputError) return c.json(errorBody(error.code, error.message), 400);
    if (error instanceof RetryableError) return c.json(errorBody(error.code, describeError(error)), 503);
    logger.error("an HTTP request failed", { method: c.req.method, path: c.req.path, error });
    return c.json(errorBody("INTERNAL", "the service failed; its log says why"), 500);
  });
  return app;
}

export function errorBody(code: string, message: string): HttpErrorBody {
  return { error: { code, message: redactText(message) } };
}
