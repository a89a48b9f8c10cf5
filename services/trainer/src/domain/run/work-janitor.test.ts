import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createLogger } from "@hone/telemetry";
import { dropOnce } from "./work-janitor.ts";

const logger = createLogger({ service: "test", level: "error", sink: process.stderr });

describe("dropOnce()", () => {
  test("drops jobs, rewards and episodes only of runs that are over, and keeps those that a failed run would replay", async () => {
    const dropped: [string, number][] = [];
    const purged: string[] = [];
    const unrewarded: string[] = [];
    await dropOnce({
      registry: {
        overAmong: async (runIds) =>
          runIds
            .filter((runId) => runId.startsWith("over"))
            .map((runId) => ({ runId, neededFrom: runId === "over-1" ? 7 : Number.MAX_SAFE_INTEGER })),
      },
      jobs: {
        runs: async () => ["over-4", "active-2", "over-5"],
        purge: async (runId) => void purged.push(runId),
      },
      rollouts: {
        runs: async () => ["over-1", "active-2", "unknown-3", "over-4"],
        purgeBelow: async (runId, sequence) => void dropped.push([runId, sequence]),
      },
      rewards: {
        runs: async () => ["over-1", "active-2", "over-6"],
        drop: async (runId) => void unrewarded.push(runId),
      },
      logger,
    });
    assert.deepEqual(unrewarded, ["over-1", "over-6"]);
    assert.deepEqual(purged, ["over-4", "over-5"]);
    assert.deepEqual(dropped.sort(), [
      ["over-1", 7],
      ["over-4", Number.MAX_SAFE_INTEGER],
    ]);
  });

  test("does not query the database where the streams are empty", async () => {
    await dropOnce({
      registry: { overAmong: async () => assert.fail("nothing to ask") },
      jobs: { runs: async () => [], purge: async () => assert.fail("nothing to drop") },
      rollouts: { runs: async () => [], purgeBelow: async () => assert.fail("nothing to drop") },
      rewards: { runs: async () => [], drop: async () => assert.fail("nothing to drop") },
      logger,
    });
  });
});
