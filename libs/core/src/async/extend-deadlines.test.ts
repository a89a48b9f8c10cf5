import assert from "node:assert/strict";
import { test } from "node:test";
import { DeadlineError } from "../errors.ts";
import { deadline } from "./deadline.ts";
import { delay } from "./delay.ts";
import { allowedMs, extendDeadlines } from "./extend-deadlines.ts";

/* This test has a file of its own, as extendDeadlines() changes the whole process and cannot be undone. */

test("extendDeadlines() lets deadlines wait while the process is halted at a breakpoint", async () => {
  const slow = () => deadline("an answer", 5, () => delay(50).then(() => "in the end"));
  await assert.rejects(slow(), DeadlineError);
  assert.equal(allowedMs(5), 5);
  extendDeadlines();
  assert.equal(await slow(), "in the end");
  assert.ok(allowedMs(5) > 3_600_000);
  assert.equal(allowedMs(Number.POSITIVE_INFINITY), Number.POSITIVE_INFINITY);
});
