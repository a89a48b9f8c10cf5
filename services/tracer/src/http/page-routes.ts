/**
 * The web page: the files of `page/`, which are read once at the start (page-files.ts).
 *
 * The page consists of ES modules and CSS from this origin. The policy below forbids everything else, inline scripts
 * and styles included, so model output could do no harm even if it were not escaped correctly. Only images may also be data of the
 * page itself: the pictures of environments, in which no script runs, as they are images.
 */

import { Hono } from "hono";
import { type PageFile, readPageFiles } from "./page-files.ts";

const START_FILE = "index.html";

/** The paths of the views, which the start file chooses from. */
const VIEWS = ["/", "/compare", "/search", "/runs/*", "/traces/*"];

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Headers of every answer, as a browser may show any of them. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** Reads the page's files and makes its routes. The paths of all views answer with the start file, which chooses the view. */
export async function pageRoutes(): Promise<Hono> {
  const files = await readPageFiles();
  const start = files.get(START_FILE);
  const app = new Hono();
  const answer = (request: Request, file: PageFile | undefined): Response => {
    if (file === undefined) return new Response("not found\n", { status: 404 });
    const headers = { "content-type": file.type, etag: file.etag, "cache-control": "no-cache" };
    const isKnown = request.headers.get("if-none-match") === file.etag;
    return new Response(isKnown ? null : file.body, { status: isKnown ? 304 : 200, headers });
  };
  app.get("/page/*", (c) => answer(c.req.raw, files.get(c.req.path.slice("/page/".length))));
  for (const view of VIEWS) app.get(view, (c) => answer(c.req.raw, start));
  return app;
}
