import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { delay } from "@hone/core";
import { silentLogger } from "@hone/telemetry";
import { runStages, type Stage } from "./stages.ts";

describe("runStages()", () => {
  test("runs every stage in order, each after the one before", async () => {
    const events: string[] = [];
    const stage = (name: string): Stage => ({
      name,
      async run() {
        events.push(`${name} begins`);
        await delay(1);
        events.push(`${name} ends`);
      },
    });
    const report = await runStages([stage("drain"), stage("close")], {
      graceMs: 1_000,
      logger: silentLogger(),
    });
    assert.deepEqual(events, ["drain begins", "drain ends", "close begins", "close ends"]);
    assert.equal(report.isClean, true);
  });

  test("the stages after one that fails run, and the report names it", async () => {
    let isClosed = false;
    const report = await runStages(
      [
        { name: "drain", run: () => Promise.reject(new Error("stuck")) },
        {
          name: "close",
          run: async () => {
            isClosed = true;
          },
        },
      ],
      { graceMs: 1_000, logger: silentLogger() },
    );
    assert.equal(isClosed, true);
    assert.deepEqual(report.problems, ["drain failed: stuck"]);
    assert.equal(report.isClean, false);
  });

  test("a stage that hangs is aborted in time for the stages after it", async () => {
    let reason: unknown;
    let closeHad = 0;
    const report = await runStages(
      [
        {
          name: "drain",
          reserveMs: 900,
          run: (signal) => {
            signal.addEventListener("abort", () => {
              reason = signal.reason;
            });
            return new Promise<void>(() => undefined);
          },
        },
        {
          name: "close",
          run: async (signal) => {
            closeHad = signal.aborted ? 0 : 1;
          },
        },
      ],
      { graceMs: 1_000, logger: silentLogger() },
    );
    assert.ok(reason instanceof Error);
    assert.equal(closeHad, 1);
    assert.match(report.problems.join(), /^drain took longer than \d+ ms$/);
    assert.ok(report.tookMs < 900, `${report.tookMs} ms`);
  });
});
