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
      nats: { kind: "known", url: "nats://127.0.0.1:4222" },
      database: undefined,
      streams: "make",
      streamReplicas: 1,
      episodesMaxBytes: undefined,
      inboxPrefix: undefined,
      stateDir: resolve(".hone"),
      filesDir: resolve("."),
      httpAllowedHosts: [],
      httpHost: "127.0.0.1",
      httpPort: 0,
      readyFile: undefined,
      logLevel: "info",
      tracerUrl: undefined,
      traceSampleRatio: 1,
      tracerToken: undefined,
    });
  });

  test("takes an address from its variable or from a file, and not from both", () => {
    const both = readBaseConfig({
      HONE_NATS_URL_FILE: "/run/bus",
      HONE_DATABASE_URL: "postgres://there/hone",
    });
    assert.deepEqual(both.nats, { kind: "told", file: "/run/bus", variable: "HONE_NATS_URL_FILE" });
    assert.deepEqual(both.database, { kind: "known", url: "postgres://there/hone" });
    assert.throws(
      () => readBaseConfig({ HONE_DATABASE_URL: "postgres://there/hone", HONE_DATABASE_URL_FILE: "/run/db" }),
      /HONE_DATABASE_URL_FILE must be absent where HONE_DATABASE_URL is set/,
    );
  });

  test("takes a size for the stream of episodes that has room for some of them", () => {
    const read = (bytes: string) => readBaseConfig({ HONE_EPISODES_MAX_BYTES: bytes }).episodesMaxBytes;
    assert.equal(read("17179869184"), 16 * 1024 ** 3);
    for (const wrong of ["4194303", "16GiB", "-1"])
      assert.throws(() => read(wrong), /HONE_EPISODES_MAX_BYTES/);
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
