import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import { AttemptClock } from "./attempt-clock.ts";

/** Uses the mock timers and clock of node:test, so that the tests do not wait. */
function withTime(work: (tick: (ms: number) => void) => void): void {
  let now = 0;
  mock.timers.enable({ apis: ["setTimeout"] });
  const clock = mock.method(performance, "now", () => now);
  try {
    work((ms) => {
      now += ms;
      mock.timers.tick(ms);
    });
  } finally {
    clock.mock.restore();
    mock.timers.reset();
  }
}

describe("AttemptClock", () => {
  test("expires once, when its time is used up", () => {
    withTime((tick) => {
      let expired = 0;
      const clock = new AttemptClock(100, () => expired++);
      tick(99);
      assert.equal(expired, 0);
      assert.equal(clock.remainingMs, 1);
      tick(1);
      assert.equal(expired, 1);
      assert.ok(clock.isExpired);
      tick(1_000);
      assert.equal(expired, 1);
      assert.equal(clock.spentMs, 100);
    });
  });

  test("does not run while it is stopped, and charges what its caller says", () => {
    withTime((tick) => {
      let expired = 0;
      const clock = new AttemptClock(100, () => expired++);
      tick(10);
      clock.stop();
      tick(10_000);
      assert.equal(expired, 0);
      assert.equal(clock.spentMs, 10);
      clock.start(30);
      assert.equal(clock.spentMs, 40);
      tick(59);
      assert.equal(expired, 0);
      tick(1);
      assert.equal(expired, 1);
    });
  });

  test("runs again when all of several callers have started it", () => {
    withTime((tick) => {
      let expired = 0;
      const clock = new AttemptClock(100, () => expired++);
      clock.stop();
      clock.stop();
      clock.start(0);
      tick(500);
      assert.equal(expired, 0);
      clock.start(0);
      tick(100);
      assert.equal(expired, 1);
    });
  });

  test("expires at once when a charge uses up its time", () => {
    withTime(() => {
      let expired = 0;
      const clock = new AttemptClock(100, () => expired++);
      clock.stop();
      clock.start(100);
      assert.equal(expired, 1);
    });
  });

  test("never expires after its end", () => {
    withTime((tick) => {
      let expired = 0;
      const clock = new AttemptClock(100, () => expired++);
      tick(40);
      clock.end();
      tick(1_000);
      assert.equal(expired, 0);
      assert.equal(clock.spentMs, 40);
    });
  });
});
