/**
 * GET /api/live?run=: Server-Sent Events. The event `ready` comes once, when changes are reported from then on; an event
 * `changed` with the ids of the runs comes whenever some have changed.
 */

import { Hono } from "hono";
import { streamSSE } from "hono/streaming";
import { z } from "zod";
import { parseParameters } from "./api/validate-query.ts";
import type { LiveFeed } from "./live-feed.ts";

/** Proxies close connections that are silent for long. */
const HEARTBEAT_MS = 15_000;
/** A page has one, and a browser allows six for a site; more than this do not come from people who look at pages. */
const MAX_LISTENERS = 256;

const query = z.object({ run: z.string().max(128).optional() });

export function liveRoutes(feed: LiveFeed): Hono {
  const app = new Hono();
  let listeners = 0;
  app.get("/live", (c) => {
    const { run } = parseParameters(query, c.req.query());
    if (listeners >= MAX_LISTENERS)
      return c.text(`more than ${MAX_LISTENERS} pages are open; close some`, 503);
    c.header("cache-control", "no-store");
    c.header("x-accel-buffering", "no");
    return streamSSE(c, async (stream) => {
      listeners++;
      const gone = new AbortController();
      stream.onAbort(() => gone.abort());
      const heartbeat = setInterval(() => void stream.write(":\n\n"), HEARTBEAT_MS);
      try {
        const changes = await feed.open(gone.signal);
        await stream.writeSSE({ event: "ready", data: "{}" });
        for await (const changed of changes) {
          if (run !== undefined && !changed.has(run)) continue;
          await stream.writeSSE({ event: "changed", data: JSON.stringify({ runs: [...changed] }) });
        }
      } finally {
        gone.abort();
        clearInterval(heartbeat);
        listeners--;
      }
    });
  });
  return app;
}
