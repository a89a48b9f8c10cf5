import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { metricsText } from "@hone/telemetry";
import { MeasuredSandbox } from "./measured-sandbox.ts";

const LIMITS = { timeMs: 60_000, maxOutputBytes: 100 };

describe("MeasuredSandbox", { timeout: 120_000 }, () => {
  test("the number of runs that wait for a process is on /metrics until the sandbox is closed", async () => {
    const sandbox = new MeasuredSandbox("tool", { maxProcesses: 1 });
    const over = new AbortController();
    const runs = [1, 2, 3].map(() => sandbox.run("while True: pass", LIMITS, over.signal));
    const settled = Promise.allSettled(runs);
    while (sandbox.numWaiting < 2) await new Promise((resolve) => setTimeout(resolve, 50));
    const text = await metricsText();
    assert.match(text, /^hone_sandbox_processes\{part="tool"\} 1$/m);
    assert.match(text, /^hone_sandbox_processes_taken\{part="tool"\} 1$/m);
    assert.match(text, /^hone_sandbox_waiting\{part="tool"\} 2$/m);
    over.abort(new Error("enough"));
    await settled;
    await sandbox.run("1", LIMITS, new AbortController().signal);
    assert.match(await metricsText(), /^hone_sandbox_wait_seconds_count\{part="tool"\} [1-9]/m);
    await sandbox.close();
    assert.doesNotMatch(await metricsText(), /hone_sandbox_waiting\{part="tool"\}/);
  });
});
