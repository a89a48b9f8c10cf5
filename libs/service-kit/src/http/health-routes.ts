/**
 * /livez, /readyz and /metrics.
 *
 * `/livez` answers 200 while the event loop turns: a service that waits for the bus is alive. `/readyz` answers 200 or 503
 * with every reason as JSON. `/metrics` answers in Prometheus' text format.
 */

import { Instrument, METRICS_CONTENT_TYPE, metricsText, observeMetric, redactText } from "@hone/telemetry";
import { Hono } from "hono";
import type { ReadinessReport } from "../lifecycle/readiness.ts";

export interface HealthRoutesOptions {
  readonly service: string;
  readonly instanceId: string;
  readiness(): Promise<ReadinessReport>;
}

export const LIVE_PATH = "/livez";
export const READY_PATH = "/readyz";
export const METRICS_PATH = "/metrics";

export function healthRoutes(options: HealthRoutesOptions): Hono {
  const { service, instanceId } = options;
  const app = new Hono();
  app.get(LIVE_PATH, (c) => c.json({ service, instanceId, alive: true }));
  app.get(READY_PATH, async (c) => {
    const { ready, reasons } = await options.readiness();
    return c.json({ service, instanceId, ready, reasons: reasons.map(redactText) }, ready ? 200 : 503);
  });
  app.get(METRICS_PATH, async (c) => {
    using _ready = observeMetric(Instrument.serviceReady, async () => {
      const { ready } = await options.readiness();
      return [{ labels: { service }, value: Number(ready) }];
    });
    return c.body(await metricsText(), 200, { "content-type": METRICS_CONTENT_TYPE });
  });
  return app;
}
