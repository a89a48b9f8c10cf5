/**
 * Which requests may change something: notes, rewards, the course of runs.
 *
 * Every request has passed the guard of all HTTP servers (no foreign host, no foreign origin, JSON only) and shown the page's token.
 * The attacker here is a page of another site that is open in the browser of somebody who has the cookie.
 *
 * W1: without a token nothing can be changed: everybody who reaches the address could.
 * W2: a request that shows the token by the cookie must say that it comes from this page, by `Origin`, which the guard has compared
 *     with the host, or by `Sec-Fetch-Site`. Browsers send them with every request that changes something, and no page can forge them. A
 *     request with the token in a header is a program's: no other site's page knows the token.
 */

import { bearerToken, errorBody } from "@hone/service-kit";
import type { MiddlewareHandler } from "hono";

const READING = new Set(["GET", "HEAD", "OPTIONS"]);

/** @param hasToken whether the tracer asks for a token at all. */
export function writeAccess(hasToken: boolean): MiddlewareHandler {
  return async function checkWrite(c, next) {
    if (READING.has(c.req.method)) return next();
    if (!hasToken) {
      const message =
        "nothing can be changed here, as the tracer has no token; set HONE_TRACER_TOKEN, so that not everybody may";
      return c.json(errorBody("NO_TOKEN", message), 403); // W1
    }
    const isProgram = bearerToken(c.req.header("authorization")) !== undefined;
    const isFromPage =
      c.req.header("sec-fetch-site") === "same-origin" || c.req.header("origin") !== undefined;
    if (isProgram || isFromPage) return next();
    const message =
      "the request does not say that it comes from this page; a program sends the token as a bearer token";
    return c.json(errorBody("NOT_FROM_PAGE", message), 403); // W2
  };
}
