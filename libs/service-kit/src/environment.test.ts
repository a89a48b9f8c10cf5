import assert from "node:assert/strict";
import { resolve } from "node:path";
import { describe, test } from "node:test";
import { ConfigError } from "@hone/config";
import { readBaseConfig } from "./environment.ts";

describe("readBaseConfig()", () => {
  test("has a default for everything but the database", () => {
    const { instanceId, ...config } = readBaseConfig({ HONE_DATABASE_URL: "" });
    assert.match(instanceId, /^[A-Za-z0-9_-]+$/);
    assert.deepEqual(config, {
      natsUrl: "nats://127.0.0.1:4222",
      databaseUrl: undefined,
      stateDir: resolve(".hone"),
      filesDir: resolve("."),
      httpHost: "127.0.0.1",
      httpPort: 0,
      readyFile: undefined,
      logLevel: "info",
      otlpEndpoint: undefined,
      traceSampleRatio: 1,
    });
  });

  test("names every wrong variable at once", () => {
    assert.throws(
      () => readBaseConfig({ HONE_HTTP_PORT: "70000", HONE_LOG_LEVEL: "loud", HONE_INSTANCE_ID: "pod.one" }),
      (error) =>
        error instanceof ConfigError &&
        ["HONE_HTTP_PORT", "HONE_LOG_LEVEL", "HONE_INSTANCE_ID"].every((name) =>
          error.problems.some(({ key }) => key === name),
        ),
    );
  });
});
