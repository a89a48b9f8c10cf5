import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { tokenSetRatio } from "./token-set-ratio.ts";

describe("tokenSetRatio()", () => {
  // The numbers are those of TheFuzz 0.22.
  for (const [a, b, ratio] of [
    ["essential oils", "essential oil", 96],
    ["oil, essential", "essential oils", 96],
    ["grey", "gray", 75],
    ["pack of 12", "pack of 24", 90],
    ["non slip", "anti slip", 71],
    ["A-b", "b a", 100],
    ["red", "blue", 29],
  ] as const) {
    test(`is ${ratio} for "${a}" and "${b}"`, () => {
      assert.equal(tokenSetRatio(a, b), ratio);
      assert.equal(tokenSetRatio(b, a), ratio);
    });
  }

  test("is 100 if all words of one text stand in the other, however often", () => {
    for (const other of ["large", "extra large", "large, extra large", "LARGE large"]) {
      assert.equal(tokenSetRatio("large", other), 100);
    }
  });

  test("is 0 for a text without letters and digits", () => {
    for (const empty of ["", "!?", " "]) {
      assert.equal(tokenSetRatio(empty, "red"), 0);
      assert.equal(tokenSetRatio(empty, empty), 0);
    }
  });
});
