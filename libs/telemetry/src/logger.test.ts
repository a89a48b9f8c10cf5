import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RetryableError } from "@hone/core";
import { createLogger, type LogLevel } from "./logger.ts";

function recorder(options: { level?: LogLevel; isTTY?: boolean } = {}) {
  const lines: string[] = [];
  const logger = createLogger({
    service: "judge",
    level: options.level,
    sink: { isTTY: options.isTTY, write: (line) => lines.push(line) },
  });
  return { logger, lines, last: () => JSON.parse(lines.at(-1) ?? "null") as Record<string, unknown> };
}

describe("createLogger()", () => {
  test("writes one line of JSON with time, level, service and fields", () => {
    const { logger, lines, last } = recorder();
    logger.child({ run: "lake-1" }).info("scored\nan episode", { episodes: 12, took: 3n });
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? "", /^\{.*\}\n$/);
    const { time, ...rest } = last();
    assert.match(String(time), /^\d{4}-\d\d-\d\dT.*Z$/);
    assert.deepEqual(rest, {
      level: "info",
      service: "judge",
      message: "scored\nan episode",
      run: "lake-1",
      episodes: 12,
      took: "3",
    });
  });

  test("leaves out lines above its level", () => {
    const { logger, lines } = recorder({ level: "warn" });
    logger.info("no");
    logger.debug("no");
    logger.warn("yes");
    logger.error("yes");
    assert.equal(lines.length, 2);
  });

  test("writes a readable line on a terminal", () => {
    const { logger, lines } = recorder({ isTTY: true });
    logger.info("ready", { port: 8080 });
    assert.match(lines[0] ?? "", /^\d\d:\d\d:\d\d\.\d{3} info {2}judge ready port=8080\n$/);
  });

  test("leaves out passwords, tokens and keys, known by their names or by their form", () => {
    const { logger, lines } = recorder();
    logger.info("connecting to nats://hone:hunter2@bus:4222", {
      databaseUrl: "postgres://hone:hunter2@db:5432/hone",
      apiKey: "hunter2",
      headers: { Authorization: "Bearer hunter2hunter2", accept: "text/html" },
      list: [{ HF_TOKEN: "hunter2" }],
      error: new RetryableError("AWAY", "Cannot ask https://hunter2@hub as it is away", {
        cause: new Error("password=hunter2 is wrong"),
      }),
    });
    assert.doesNotMatch(lines[0] ?? "", /hunter2/);
    assert.match(lines[0] ?? "", /db:5432/);
    assert.match(lines[0] ?? "", /text\/html/);
  });

  test("writes an error's type, code, causes and stack", () => {
    const { logger, last } = recorder();
    logger.error("failed", {
      error: new RetryableError("AWAY", "Cannot ask", { cause: new Error("refused") }),
    });
    const error = last().error as Record<string, unknown>;
    assert.equal(error.type, "RetryableError");
    assert.equal(error.code, "AWAY");
    assert.deepEqual(error.cause, { type: "Error", message: "refused" });
    assert.match(String(error.stack), /logger\.test\.ts/);
  });

  test("writes fields that refer to themselves, are deep, long or binary", () => {
    const { logger, lines, last } = recorder();
    const loop: Record<string, unknown> = { name: "loop" };
    loop.self = loop;
    logger.info("odd", {
      loop,
      ids: new Uint32Array(1_000),
      text: "x".repeat(20_000),
      many: Array(500).fill(1),
    });
    assert.equal(lines.length, 1);
    assert.equal(last().ids, "[4000 bytes]");
    assert.ok((lines[0]?.length ?? 0) < 10_000);
  });
});
