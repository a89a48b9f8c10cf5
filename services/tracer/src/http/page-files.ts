/**
 * Reads the page's files once, and makes of its TypeScript what browsers run.
 *
 * Types are replaced by spaces, by the same code of Node that starts the services, so that lines and columns in a browser's
 * errors are those of the file. It runs in a thread of its own: there the notice that this function of Node may still change does
 * not get into the service's log, and its memory is free again afterwards.
 */

import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { PageSourceError } from "../errors.ts";

const PAGE_FOLDER = path.join(import.meta.dirname, "page");
/** Some fifty files take a second on a busy machine. */
const STRIP_DEADLINE_MS = 30_000;

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".ts": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
const TESTS = /\.test\.ts$/;

/** A file as it is sent. */
export interface PageFile {
  readonly type: string;
  readonly body: ArrayBuffer;
  readonly etag: string;
}

/**
 * @returns the files by their path below `/page/`.
 * @throws {PageSourceError} when a file is no TypeScript whose types can be removed.
 */
export async function readPageFiles(): Promise<Map<string, PageFile>> {
  const texts = new Map<string, string>();
  const sources: Record<string, string> = {};
  for (const entry of await readdir(PAGE_FOLDER, { recursive: true, withFileTypes: true })) {
    const extension = path.extname(entry.name);
    if (!entry.isFile() || TYPES[extension] === undefined || TESTS.test(entry.name)) continue;
    const file = path.join(entry.parentPath, entry.name);
    const name = path.relative(PAGE_FOLDER, file).split(path.sep).join("/");
    const text = await readFile(file, "utf8");
    texts.set(name, text);
    if (extension === ".ts") sources[name] = text;
  }
  for (const [name, text] of Object.entries(await stripTypes(sources))) texts.set(name, text);
  return new Map([...texts].map(([name, text]) => [name, pageFileOf(name, text)]));
}

function pageFileOf(name: string, text: string): PageFile {
  const bytes = new TextEncoder().encode(text);
  const digest = createHash("sha256").update(bytes).digest("base64url");
  return { type: TYPES[path.extname(name)] ?? "", body: bytes.buffer, etag: `"${digest}"` };
}

async function stripTypes(sources: Readonly<Record<string, string>>): Promise<Record<string, string>> {
  const thread = new Worker(new URL("./strip-types.ts", import.meta.url), {
    workerData: sources,
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, string>>();
  const timer = setTimeout(
    () => reject(new PageSourceError(`its types were not removed within ${STRIP_DEADLINE_MS} ms`)),
    STRIP_DEADLINE_MS,
  );
  thread.on("message", resolve);
  thread.on("error", (cause) =>
    reject(new PageSourceError(cause instanceof Error ? cause.message : String(cause), { cause })),
  );
  thread.on("exit", (code) =>
    reject(new PageSourceError(`the thread that reads it ended with code ${code}`)),
  );
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    await thread.terminate();
  }
}
