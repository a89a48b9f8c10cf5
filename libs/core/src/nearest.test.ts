import assert from "node:assert/strict";
import { test } from "node:test";
import { nearest } from "./nearest.ts";

test("nearest() finds the name that was probably meant, in upper or lower case", () => {
  const keys = ["groupSize", "maxTurns", "deadlineMs"];
  assert.equal(nearest("grupSize", keys), "groupSize");
  assert.equal(nearest("maxturns", keys), "maxTurns");
});

test("nearest() suggests nothing when no name is similar", () => {
  assert.equal(nearest("x", ["groupSize", "deadlineMs"]), undefined);
  assert.equal(nearest("anything", []), undefined);
});
