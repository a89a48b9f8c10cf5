/**
 * Restricts the page, its API and the intake of spans to those who know the tracer's token.
 *
 * A program sends it as a bearer token. A browser gets it by the link that the command line prints (`/?token=…`). The
 * answer sets a cookie and redirects to the same address without the token, so that no bookmark and no `Referer` holds it.
 *
 * A1: scripts cannot read the cookie (HttpOnly), and it is not sent with what pages of other sites load or post (SameSite).
 * A2: browsers do not separate cookies by port, so the cookie's name is derived from the token: two tracers on one machine
 *     do not overwrite each other's cookie.
 */

import { createHash } from "node:crypto";
import { secretCheck } from "@hone/core";
import { bearerToken, errorBody } from "@hone/service-kit";
import type { MiddlewareHandler } from "hono";
import { getCookie, setCookie } from "hono/cookie";

const PARAMETER = "token";
/** After this time the link is needed again. */
const COOKIE_SECONDS = 30 * 86_400;
/** Paths that programs use: errors are JSON there, and a token in the address is not accepted. */
const PROGRAMS = /^\/(api|v1)\//;

const CLOSED_PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Hone</title>
<h1>This page needs a token</h1>
<p>Open the link that <code>hone up</code>, <code>hone run</code> and <code>hone status</code> print; it contains the token.
On a cluster the notes of <code>helm install</code> say how to read it.</p></html>
`;

/** @param token undefined = everybody who reaches the address may look. */
export function pageAccess(token: string | undefined): MiddlewareHandler {
  if (token === undefined) {
    return async function allowEverybody(_c, next) {
      await next();
    };
  }
  const isToken = secretCheck(token);
  const cookie = `hone-${createHash("sha256").update(token).digest("hex").slice(0, 12)}`; // A2
  return async function checkToken(c, next) {
    const url = new URL(c.req.url);
    const isProgram = PROGRAMS.test(url.pathname);
    const given = isProgram ? null : url.searchParams.get(PARAMETER);
    if (c.req.method === "GET" && given !== null && isToken(given)) {
      url.searchParams.delete(PARAMETER);
      setCookie(c, cookie, token, {
        httpOnly: true,
        sameSite: "Lax",
        path: "/",
        maxAge: COOKIE_SECONDS,
      }); // A1
      c.header("cache-control", "no-store");
      // A location that begins with two slashes would name another server.
      return c.redirect(`${url.pathname.replace(/^\/+/, "/")}${url.search}`, 303);
    }
    const known = [bearerToken(c.req.header("authorization")), getCookie(c, cookie)];
    if (known.some((each) => each !== undefined && isToken(each))) return next();
    c.header("cache-control", "no-store");
    if (!isProgram) return c.html(CLOSED_PAGE, 401);
    const message =
      "the tracer needs its token as a bearer token; hone status prints a link that contains it, and a cluster keeps it in a secret";
    return c.json(errorBody("UNAUTHORIZED", message), 401, { "www-authenticate": "Bearer" });
  };
}
