import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EngineIdle, type ReplicaTime } from "./engine-idle.ts";

/** Measures after each of the reports. */
async function idleAfter(...reports: readonly (readonly ReplicaTime[] | undefined)[]) {
  const left = [...reports];
  const idle = new EngineIdle(async () => left.shift());
  const shares: (number | undefined)[] = [];
  for (const _ of reports) shares.push(await idle.measure());
  return shares;
}

const a = (upMs: number, busyMs: number): ReplicaTime => ({ replica: "a", upMs, busyMs });
const b = (upMs: number, busyMs: number): ReplicaTime => ({ replica: "b", upMs, busyMs });

describe("EngineIdle", () => {
  test("tells the share between two reports, and nothing before the second", async () => {
    assert.deepEqual(await idleAfter([a(5_000, 100)], [a(6_000, 850)]), [undefined, 0.25]);
  });

  test("weighs replicas by their time", async () => {
    const before = [a(0, 0), b(0, 0)];
    assert.deepEqual(await idleAfter(before, [a(1_000, 1_000), b(3_000, 0)]), [undefined, 0.75]);
  });

  test("leaves out replicas that are new or were started again", async () => {
    const shares = await idleAfter(
      [a(9_000, 9_000)],
      [a(500, 0), b(100, 100)],
      [a(1_500, 1_000), b(100, 100)],
    );
    assert.deepEqual(shares, [undefined, undefined, 0]);
  });

  test("goes on from the last report that could be read", async () => {
    const shares = await idleAfter([a(1_000, 0)], undefined, [a(3_000, 500)]);
    assert.deepEqual(shares, [undefined, undefined, 0.75]);
  });
});
