import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { FrozenLake, frozenLakeConfigSchema } from "./frozen-lake/frozen-lake.ts";
import { logNormalMs, SlowEnvironment } from "./slow-environment.ts";

const LAKE = frozenLakeConfigSchema.parse({});
/** Far longer than a test may take, so such a step only ends because the environment is closed. */
const ENDLESS_MS = 3_600_000;

describe("SlowEnvironment", () => {
  test("plays the same episode, and each step takes at least the given time", async () => {
    const plain = new FrozenLake(LAKE);
    const slow = new SlowEnvironment(new FrozenLake(LAKE), () => 20);
    assert.deepEqual(await slow.reset(5), plain.reset(5));
    const [answer] = plain.legalActions();
    assert.deepEqual(slow.legalActions(), plain.legalActions());
    const began = performance.now();
    assert.deepEqual(await slow.step(answer!), plain.step(answer!));
    // A timer may fire up to a millisecond early, as it counts whole milliseconds.
    assert.ok(performance.now() - began >= 19);
    assert.deepEqual(slow.metrics(), plain.metrics());
  });

  test("close() ends a step that waits", async () => {
    const slow = new SlowEnvironment(new FrozenLake(LAKE), () => ENDLESS_MS);
    await slow.reset(5);
    const step = slow.step("<answer>Right</answer>");
    await slow.close();
    await assert.rejects(step, { code: "ENVIRONMENT_CLOSED" });
  });
});

describe("logNormalMs()", () => {
  /** Sorted times. */
  function drawn(sigma: number, count: number): number[] {
    const random = new Random(7);
    const draw = logNormalMs(300, sigma, () => random.next());
    return Array.from({ length: count }, draw).sort((a, b) => a - b);
  }

  test("gives the mean and the percentiles of a log-normal distribution", () => {
    const count = 200_000;
    const times = drawn(1, count);
    const mean = times.reduce((sum, time) => sum + time, 0) / count;
    assert.ok(Math.abs(mean / 300 - 1) < 0.02, String(mean));
    const middle = 300 * Math.exp(-0.5);
    assert.ok(Math.abs(times[count / 2]! / middle - 1) < 0.02);
    assert.ok(Math.abs(times[0.99 * count]! / (middle * Math.exp(2.326)) - 1) < 0.05);
  });

  test("gives the mean each time where sigma is 0", () => {
    assert.deepEqual(new Set(drawn(0, 10)), new Set([300]));
  });
});
