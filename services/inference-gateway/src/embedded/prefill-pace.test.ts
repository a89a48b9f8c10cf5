import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PrefillPace } from "./prefill-pace.ts";

describe("PrefillPace", () => {
  test("gives a step as many tokens as fit by its measurements", () => {
    const pace = new PrefillPace(undefined);
    assert.equal(pace.tokensIn(1_000), Number.POSITIVE_INFINITY);
    pace.measured(500, 1_000);
    assert.equal(pace.tokensIn(1_000), 500);
    for (let i = 0; i < 50; i++) pace.measured(100, 400);
    assert.equal(pace.tokensIn(1_000), 250);
  });

  test("starts with the given guess, and ignores runs of a few tokens", () => {
    const pace = new PrefillPace(2);
    assert.equal(pace.tokensIn(1_000), 500);
    pace.measured(4, 1_000);
    assert.equal(pace.tokensIn(1_000), 500);
  });

  test("keeps chunks so large that reading the weights does not take most of the time", () => {
    assert.equal(new PrefillPace(1_000).tokensIn(1_000), 64);
  });
});
