import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createLogger } from "@hone/telemetry";
import { dropOnce } from "./episode-janitor.ts";

const logger = createLogger({ service: "test", level: "error", sink: process.stderr });

describe("dropOnce()", () => {
  test("drops the episodes of runs that are over, whole, and of no other", async () => {
    const dropped: [string, number][] = [];
    await dropOnce({
      registry: { overAmong: async (runIds) => runIds.filter((runId) => runId.startsWith("over")) },
      rollouts: {
        runs: async () => ["over-1", "active-2", "unknown-3", "over-4"],
        purgeBelow: async (runId, sequence) => void dropped.push([runId, sequence]),
      },
      logger,
    });
    assert.deepEqual(dropped, [
      ["over-1", Number.MAX_SAFE_INTEGER],
      ["over-4", Number.MAX_SAFE_INTEGER],
    ]);
  });

  test("asks the database nothing where the stream is empty", async () => {
    await dropOnce({
      registry: { overAmong: async () => assert.fail("nothing to ask") },
      rollouts: { runs: async () => [], purgeBelow: async () => assert.fail("nothing to drop") },
      logger,
    });
  });
});
