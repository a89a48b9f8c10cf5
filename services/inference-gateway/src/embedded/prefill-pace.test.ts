import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PrefillPace } from "./prefill-pace.ts";

describe("PrefillPace", () => {
  test("lets a step take what it has measured to fit", () => {
    const pace = new PrefillPace(undefined);
    assert.equal(pace.tokensIn(1_000), Number.POSITIVE_INFINITY);
    pace.measured(500, 1_000);
    assert.equal(pace.tokensIn(1_000), 500);
    for (let i = 0; i < 50; i++) pace.measured(100, 400);
    assert.equal(pace.tokensIn(1_000), 250);
  });

  test("begins with the guess it was given, and learns nothing from runs of a few tokens", () => {
    const pace = new PrefillPace(2);
    assert.equal(pace.tokensIn(1_000), 500);
    pace.measured(4, 1_000);
    assert.equal(pace.tokensIn(1_000), 500);
  });

  test("keeps chunks above what would be mostly the reading of weights", () => {
    assert.equal(new PrefillPace(1_000).tokensIn(1_000), 64);
  });
});
