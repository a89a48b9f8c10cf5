import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { PythonSandbox } from "@hone/sandbox";
import { TestRunners } from "./test-runners.ts";

const never = new AbortController().signal;

describe("TestRunners", { timeout: 300_000 }, () => {
  const runners = new TestRunners(new PythonSandbox({ maxProcesses: 1 }));
  after(() => runners.close());

  test("an interpreter runs the same tests again, and makes way for other ones", async () => {
    const first = await runners.take("a", never);
    runners.giveBack("a", first);
    const again = await runners.take("a", never);
    assert.equal(again, first);
    runners.giveBack("a", again);
    const other = await runners.take("b", never);
    assert.notEqual(other, first);
    assert.equal(first.isOver, true);
    runners.giveBack("b", other);
  });

  test("one that is given back while others wait for a place makes way for them", async () => {
    const first = await runners.take("b", never);
    const waiting = runners.take("a", never);
    runners.giveBack("b", first);
    const other = await waiting;
    assert.notEqual(other, first);
    await other.end();
  });

  test("a wait for an interpreter ends with its signal", async () => {
    const first = await runners.take("a", never);
    const over = new AbortController();
    const waiting = runners.take("b", over.signal);
    over.abort(new Error("not wanted"));
    await assert.rejects(waiting, /not wanted/);
    await first.end();
  });
});
