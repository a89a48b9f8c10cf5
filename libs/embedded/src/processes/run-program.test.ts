import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runProgram } from "./run-program.ts";

const countTimers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;

describe("runProgram()", () => {
  test("returns the exit code and both streams of a program", async () => {
    const ran = await runProgram("/bin/sh", ["-c", "echo out; echo err >&2; exit 3"], { timeoutMs: 10_000 });
    assert.equal(ran.code, 3);
    assert.deepEqual(ran.output.split("\n").sort(), ["err", "out"]);
  });

  test("leaves no timer behind when the program cannot be started", async () => {
    const before = countTimers();
    const ran = await runProgram("/nowhere/program", [], { timeoutMs: 60_000 });
    assert.equal(ran.code, undefined);
    assert.match(ran.output, /ENOENT/);
    assert.equal(countTimers(), before);
  });

  test("ends a program that exceeds its time limit", async () => {
    const ran = await runProgram("/bin/sleep", ["60"], { timeoutMs: 50 });
    assert.equal(ran.code, undefined);
  });
});
