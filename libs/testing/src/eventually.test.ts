import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DeadlineError } from "@hone/core";
import { eventually } from "./eventually.ts";

describe("eventually()", () => {
  test("returns the first value that is neither undefined nor false", async () => {
    const values = [undefined, false, 0];
    assert.equal(await eventually("a value", () => values.shift()), 0);
  });

  test("names what did not happen in its error, with the last failure", async () => {
    const failing = () => Promise.reject(new Error("not yet"));
    await assert.rejects(
      eventually("the answer", failing, { deadlineMs: 30 }),
      (error) => error instanceof DeadlineError && /the answer \(last failure: not yet\)/.test(error.message),
    );
  });

  test("rejects when its signal aborts", async () => {
    const reason = new Error("stop");
    await assert.rejects(
      eventually("nothing", () => undefined, { signal: AbortSignal.abort(reason) }),
      reason,
    );
  });
});
