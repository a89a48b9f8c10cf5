import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { InterruptedError, interruptAfter } from "./interrupt.ts";

describe("interruptAfter()", () => {
  const endless = () => {
    for (;;);
  };

  test("returns what the work returns, and throws what it throws", () => {
    assert.equal(
      interruptAfter(1_000, () => 6 * 7),
      42,
    );
    const broken = () => {
      throw new RangeError("out of range");
    };
    assert.throws(() => interruptAfter(1_000, broken), RangeError);
  });

  test("stops endless loops and regular expressions, and can run other work afterwards", () => {
    const matching = () => /^(a+)+$/.test(`${"a".repeat(60)}!`);
    for (const work of [endless, matching]) {
      const before = performance.now();
      assert.throws(() => interruptAfter(50, work), InterruptedError);
      assert.ok(performance.now() - before >= 50);
      assert.equal(
        interruptAfter(1_000, () => "next"),
        "next",
      );
    }
  });

  test("stops nested work without stopping the work around it", () => {
    const outer = interruptAfter(10_000, () => {
      assert.throws(() => interruptAfter(20, endless), InterruptedError);
      return interruptAfter(1_000, () => "inner");
    });
    assert.equal(outer, "inner");
  });
});
