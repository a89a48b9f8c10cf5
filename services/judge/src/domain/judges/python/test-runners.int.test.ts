import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { PythonSandbox } from "@hone/sandbox";
import { TestRunners } from "./test-runners.ts";

const never = new AbortController().signal;

describe("TestRunners", { timeout: 300_000 }, () => {
  const runners = new TestRunners(new PythonSandbox({ maxProcesses: 1 }));
  after(() => runners.close());

  test("an interpreter is used again for the same tests, and ended for other tests", async () => {
    const first = await runners.take("a", never);
    runners.release("a", first);
    const again = await runners.take("a", never);
    assert.equal(again, first);
    runners.release("a", again);
    const other = await runners.take("b", never);
    assert.notEqual(other, first);
    assert.equal(first.isOver, true);
    runners.release("b", other);
  });

  test("an interpreter that is given back while others wait for a place is ended", async () => {
    const first = await runners.take("b", never);
    const waiting = runners.take("a", never);
    runners.release("b", first);
    const other = await waiting;
    assert.notEqual(other, first);
    await other.end();
  });

  test("a wait for an interpreter ends when its signal aborts", async () => {
    const first = await runners.take("a", never);
    const over = new AbortController();
    const waiting = runners.take("b", over.signal);
    over.abort(new Error("not wanted"));
    await assert.rejects(waiting, /not wanted/);
    await first.end();
  });
});
