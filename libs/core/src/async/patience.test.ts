import assert from "node:assert/strict";
import { test } from "node:test";
import { DeadlineError } from "../errors.ts";
import { deadline } from "./deadline.ts";
import { delay } from "./delay.ts";
import { allowedMs, bePatient } from "./patience.ts";

/* In a file of its own: it holds for the process. */

test("bePatient() lets deadlines wait for who stands at a breakpoint", async () => {
  const slow = () => deadline("an answer", 5, () => delay(50).then(() => "in the end"));
  await assert.rejects(slow(), DeadlineError);
  assert.equal(allowedMs(5), 5);
  bePatient();
  assert.equal(await slow(), "in the end");
  assert.ok(allowedMs(5) > 3_600_000);
  assert.equal(allowedMs(Number.POSITIVE_INFINITY), Number.POSITIVE_INFINITY);
});
