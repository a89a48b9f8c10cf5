import assert from "node:assert/strict";
import { test } from "node:test";
import { nearest } from "./nearest.ts";

test("nearest() finds what was probably meant, in any case", () => {
  const keys = ["groupSize", "maxTurns", "deadlineMs"];
  assert.equal(nearest("grupSize", keys), "groupSize");
  assert.equal(nearest("maxturns", keys), "maxTurns");
});

test("nearest() suggests nothing far-fetched", () => {
  assert.equal(nearest("x", ["groupSize", "deadlineMs"]), undefined);
  assert.equal(nearest("anything", []), undefined);
});
