import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { notReady, READY, type ReadinessCheck, reportReadiness } from "../lifecycle/readiness.ts";
import { healthRoutes } from "./health-routes.ts";

function app(checks: ReadinessCheck[]) {
  return healthRoutes({ service: "judge", instanceId: "one", readiness: () => reportReadiness(checks) });
}

describe("healthRoutes()", () => {
  test("/readyz answers 200 when every check says yes", async () => {
    const response = await app([{ name: "bus", check: () => READY }]).request("/readyz");
    assert.equal(response.status, 200);
    assert.deepEqual(await response.json(), {
      service: "judge",
      instanceId: "one",
      ready: true,
      reasons: [],
    });
  });

  test("/readyz answers 503 with every reason, that of a check that throws included, and without secrets", async () => {
    const response = await app([
      { name: "bus", check: () => notReady("disconnected") },
      { name: "engine", check: async () => notReady("loading version 3") },
      { name: "database", check: () => Promise.reject(new Error("no answer of postgres://a:b@db")) },
      { name: "files", check: () => READY },
    ]).request("/readyz");
    assert.equal(response.status, 503);
    const { ready, reasons } = (await response.json()) as { ready: boolean; reasons: string[] };
    assert.equal(ready, false);
    assert.deepEqual(reasons, [
      "bus: disconnected",
      "engine: loading version 3",
      "database: no answer of postgres://[redacted]@db",
    ]);
  });

  test("/livez answers 200 whatever is missing", async () => {
    const response = await app([{ name: "bus", check: () => notReady("disconnected") }]).request("/livez");
    assert.equal(response.status, 200);
  });

  test("/metrics answers in Prometheus' format, with the readiness as 1 or 0", async () => {
    for (const [readiness, figure] of [
      [READY, 1],
      [notReady("disconnected"), 0],
    ] as const) {
      const response = await app([{ name: "bus", check: () => readiness }]).request("/metrics");
      assert.equal(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
      assert.match(
        await response.text(),
        new RegExp(`^hone_service_ready\\{service="judge"\\} ${figure}$`, "m"),
      );
    }
  });
});
