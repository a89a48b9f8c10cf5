import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AttemptClock } from "@hone/agents";
import { delay } from "@hone/core";
import { Lease } from "./lease.ts";

/** What passes before the clock is stopped. */
const NOTHING_MS = 5;

/** A lease of a clock that a caller has stopped. */
function open({ leaseMs = 60_000, deadlineMs = 60_000 } = {}) {
  const seen = { expired: 0, timedOut: 0 };
  const clock = new AttemptClock(deadlineMs, () => {
    seen.timedOut++;
    lease.end();
  });
  clock.stop();
  const lease: Lease = new Lease({ leaseMs, clock, onExpired: () => seen.expired++ });
  return { clock, lease, seen };
}

describe("Lease", () => {
  test("charges the time between signs of life, and not that of calls", async () => {
    const { clock, lease } = open();
    await delay(40);
    assert.ok(clock.spentMs < NOTHING_MS, "nothing is charged before a sign of life");
    lease.renew();
    const first = clock.spentMs;
    assert.ok(first >= 39, `${first} ms`);
    const endOne = lease.enterCall();
    const endOther = lease.enterCall();
    const atBegin = clock.spentMs;
    await delay(40);
    endOne();
    lease.renew();
    endOther();
    assert.equal(clock.spentMs, atBegin, "a call's time is the model's");
    await delay(20);
    lease.renew();
    assert.ok(clock.spentMs >= atBegin + 19);
    lease.end();
  });

  test("expires after the last sign of life, once, without having charged the silence", async () => {
    const { clock, lease, seen } = open({ leaseMs: 60, deadlineMs: 30 });
    await delay(90);
    assert.deepEqual(seen, { expired: 1, timedOut: 0 });
    lease.renew();
    lease.enterCall()();
    await delay(90);
    assert.deepEqual(seen, { expired: 1, timedOut: 0 });
    assert.ok(clock.spentMs < NOTHING_MS);
  });

  test("stands while a call is answered, and begins again after it", async () => {
    const { lease, seen } = open({ leaseMs: 50 });
    const end = lease.enterCall();
    await delay(120);
    assert.equal(seen.expired, 0);
    end();
    await delay(20);
    assert.equal(seen.expired, 0);
    await delay(80);
    assert.equal(seen.expired, 1);
  });

  test("lets the attempt's time end at a sign of life that comes too late for it", async () => {
    const { lease, seen } = open({ leaseMs: 5_000, deadlineMs: 30 });
    await delay(50);
    assert.equal(seen.timedOut, 0);
    lease.renew();
    assert.equal(seen.timedOut, 1);
    await delay(20);
    assert.equal(seen.expired, 0);
  });
});
