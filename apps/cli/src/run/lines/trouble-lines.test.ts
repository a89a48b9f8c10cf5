import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { RolloutTroublesSchema, RunEventSchema } from "@hone/proto-gen/run";
import { Terminal } from "../../terminal.ts";
import { RunPrinter } from "../run-printer.ts";
import { TroubleMemory, troubleCounts, troubleLines } from "./trouble-lines.ts";

const troubles = (count: number, reason = "no such module") =>
  create(RolloutTroublesSchema, {
    madeFor: "step 1",
    rollouts: 80,
    outcomes: [{ outcome: "agent_failed", count, reason, reasonCount: Math.min(count, 30) }],
    tools: [{ name: "search", calls: 12, error: "no index" }],
  });

describe("troubleLines()", () => {
  test("names outcomes with their number and commonest reason, and tools that failed at every call", () => {
    assert.deepEqual(troubleLines(troubles(32)), [
      "32 of 80 agent_failed: no such module (30 of them)",
      "all 12 calls of the tool search failed: no index",
    ]);
    assert.equal(troubleCounts(troubles(32)), "32 agent_failed, tool search fails");
  });

  test("contains no control characters and no text of unlimited length", () => {
    const [line = ""] = troubleLines(troubles(80, `\u001b[2J\u001b[31mred\r\nline ${"x".repeat(100_000)}`));
    assert.doesNotMatch(line, /\p{Cc}/u);
    assert.ok(line.length < 500);
  });

  test("does not report a trouble again if only numbers in its reason differ", () => {
    const memory = new TroubleMemory();
    assert.equal(memory.newOf(troubles(3, "port 4000 is closed"))?.outcomes.length, 1);
    assert.equal(memory.newOf(troubles(9, "port 5123 is closed")), undefined);
    assert.equal(memory.newOf(troubles(9, "no such module"))?.tools.length, 0);
  });
});

describe("RunPrinter", () => {
  /** What a printer prints about two steps with the same trouble. */
  function printed(isTTY: boolean): string {
    const output = Object.assign(new PassThrough(), { isTTY, columns: 200 });
    const printer = new RunPrinter(new Terminal(output));
    const { onEvent } = printer.followOptions(new AbortController().signal);
    for (const step of [1, 2]) {
      const value = {
        step,
        totalSteps: 2,
        version: step,
        metrics: { "reward/mean": 0 },
        troubles: troubles(32),
      };
      const event = {
        runId: "r-1",
        timeMs: BigInt(Date.now() + 1_000),
        kind: { case: "stepCompleted", value },
      } as const;
      onEvent(create(RunEventSchema, event), "r-1");
    }
    printer.close();
    return String(output.read());
  }

  test("prints a trouble in each step's line without a terminal", () => {
    assert.match(
      printed(false),
      /step 1\/2 .*reward 0\.00 .*32 of 80 agent_failed: no such module \(30 of them\)/,
    );
  });

  test("prints a trouble once above a terminal's live line, which shows the counts", () => {
    const text = printed(true);
    assert.equal(text.split("step 1: 32 of 80 agent_failed: no such module").length, 2);
    assert.match(text, /step 2\/2 .*32 agent_failed, tool search fails/);
  });
});
