/**
 * GET /engine/metrics: the metrics of the inference server beside this gateway, in Prometheus' text format and by its own names.
 *
 * The server itself is reachable only for the gateway, as its other routes change weights. Like /metrics, this asks for no token.
 */

import { describeError, RetryableError, readText } from "@hone/core";
import { METRICS_CONTENT_TYPE } from "@hone/telemetry";
import { Hono } from "hono";

/** Prometheus gives a scrape ten seconds. */
const TIMEOUT_MS = 5_000;
/** vLLM's have some hundred kilobytes. */
const MAX_BYTES = 16 * 1024 ** 2;

/** The server whose metrics are passed on. */
export interface MeasuredServer {
  readonly url: string;
  readonly apiKey: string | undefined;
}

/** @param server undefined = the engine is in this process, and its metrics are at /metrics. */
export function engineMetrics(server: MeasuredServer | undefined): Hono {
  const app = new Hono();
  app.get("/metrics", async (c) => {
    if (server === undefined)
      return c.text("The engine is in this process: its metrics are at /metrics\n", 404);
    try {
      const text = await askServer(server, c.req.raw.signal);
      return c.body(text, 200, { "content-type": METRICS_CONTENT_TYPE });
    } catch (error) {
      return c.text(`The inference server does not tell its metrics: ${describeError(error)}\n`, 502);
    }
  });
  return app;
}

/** @throws when the server does not answer, or something else. */
async function askServer({ url, apiKey }: MeasuredServer, signal: AbortSignal): Promise<string> {
  const answer = await fetch(`${url.replace(/\/+$/, "")}/metrics`, {
    headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
    redirect: "error",
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  });
  const text = await readText(answer, MAX_BYTES);
  if (!answer.ok) throw new RetryableError("NO_METRICS", `it answered ${answer.status}`);
  return text;
}
