/**
 * Who may see the page, read its API and send spans: whoever knows the tracer's token.
 *
 * A program sends it as a bearer token. A browser gets it by the link that the command line prints (`/?token=…`), which is
 * answered with a cookie and the same address without the token, so that it stays in no bookmark and no `Referer`.
 *
 * A1: the cookie is the browser's alone (HttpOnly) and is not sent with what pages of other sites load or post (SameSite).
 * A2: cookies know no ports: its name is made of the token, so that two tracers on one machine do not take each other's.
 */

import { createHash } from "node:crypto";
import { secretCheck } from "@hone/core";
import { bearerToken, errorBody } from "@hone/service-kit";
import type { MiddlewareHandler } from "hono";
import { getCookie, setCookie } from "hono/cookie";

const PARAMETER = "token";
/** After it, the link is needed again. */
const COOKIE_SECONDS = 30 * 86_400;
/** Paths of programs: they are refused in their own format, and take no token in the address. */
const PROGRAMS = /^\/(api|v1)\//;

const CLOSED_PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Hone</title>
<h1>This page asks for a token</h1>
<p>Open the link that <code>hone up</code>, <code>hone run</code> and <code>hone status</code> print; it holds the token.
On a cluster the notes of <code>helm install</code> say how to read it.</p></html>
`;

/** @param token undefined = whoever reaches the address may look. */
export function pageAccess(token: string | undefined): MiddlewareHandler {
  if (token === undefined) {
    return async function letEverybodyPass(_c, next) {
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
      // A path that begins with two slashes would name another server.
      return c.redirect(`${url.pathname.replace(/^\/+/, "/")}${url.search}`, 303);
    }
    const known = [bearerToken(c.req.header("authorization")), getCookie(c, cookie)];
    if (known.some((each) => each !== undefined && isToken(each))) return next();
    c.header("cache-control", "no-store");
    if (!isProgram) return c.html(CLOSED_PAGE, 401);
    const message =
      "The tracer asks for its token as a bearer token; hone status prints a link that holds it, and a cluster has it as a secret";
    return c.json(errorBody("UNAUTHORIZED", message), 401, { "www-authenticate": "Bearer" });
  };
}
