/**
 * The web page: the files of `page/`, unchanged, which are read once at the start.
 *
 * The page consists of plain ES modules and CSS from this origin. The policy below forbids everything else, inline scripts
 * and styles included, so model output could do no harm even if it were not escaped correctly. Only images may also be data of the
 * page itself: the pictures of environments, in which no script runs, as they are images.
 */

import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { Hono } from "hono";

const PAGE_FOLDER = path.join(import.meta.dirname, "page");
const START_FILE = "index.html";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

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

interface PageFile {
  readonly type: string;
  readonly body: ArrayBuffer;
  readonly etag: string;
}

/** Reads the page's files and makes its routes. The paths of all views answer with the start file, which chooses the view. */
export async function pageRoutes(): Promise<Hono> {
  const files = await readFiles();
  const start = files.get(START_FILE);
  const app = new Hono();
  const answer = (request: Request, file: PageFile | undefined): Response => {
    if (file === undefined) return new Response("not found\n", { status: 404 });
    const headers = { "content-type": file.type, etag: file.etag, "cache-control": "no-cache" };
    const isKnown = request.headers.get("if-none-match") === file.etag;
    return new Response(isKnown ? null : file.body, { status: isKnown ? 304 : 200, headers });
  };
  app.get("/page/*", (c) => answer(c.req.raw, files.get(c.req.path.slice("/page/".length))));
  for (const view of ["/", "/runs/*", "/traces/*"]) app.get(view, (c) => answer(c.req.raw, start));
  return app;
}

async function readFiles(): Promise<Map<string, PageFile>> {
  const files = new Map<string, PageFile>();
  for (const entry of await readdir(PAGE_FOLDER, { recursive: true, withFileTypes: true })) {
    const type = TYPES[path.extname(entry.name)];
    if (!entry.isFile() || type === undefined) continue;
    const file = path.join(entry.parentPath, entry.name);
    const bytes = await readFile(file);
    const digest = createHash("sha256").update(bytes).digest("base64url");
    const name = path.relative(PAGE_FOLDER, file).split(path.sep).join("/");
    files.set(name, { type, body: Uint8Array.from(bytes).buffer, etag: `"${digest}"` });
  }
  return files;
}
