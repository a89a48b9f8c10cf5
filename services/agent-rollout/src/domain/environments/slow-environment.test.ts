import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FrozenLake, frozenLakeConfigSchema } from "./frozen-lake/frozen-lake.ts";
import { SlowEnvironment } from "./slow-environment.ts";

const LAKE = frozenLakeConfigSchema.parse({});
/** Far longer than a test may take, so such a step only ends because the environment is closed. */
const ENDLESS_MS = 3_600_000;

describe("SlowEnvironment", () => {
  test("plays the same episode, and each step takes at least the given time", async () => {
    const plain = new FrozenLake(LAKE);
    const slow = new SlowEnvironment(new FrozenLake(LAKE), 20);
    assert.deepEqual(await slow.reset(5), plain.reset(5));
    const [answer] = plain.legalAnswers();
    assert.deepEqual(slow.legalAnswers(), plain.legalAnswers());
    const began = performance.now();
    assert.deepEqual(await slow.step(answer!), plain.step(answer!));
    // A timer may fire up to a millisecond early, as it counts whole milliseconds.
    assert.ok(performance.now() - began >= 19);
    assert.deepEqual(slow.metrics(), plain.metrics());
  });

  test("close() ends a step that waits", async () => {
    const slow = new SlowEnvironment(new FrozenLake(LAKE), ENDLESS_MS);
    await slow.reset(5);
    const step = slow.step("<answer>Right</answer>");
    await slow.close();
    await assert.rejects(step, { code: "ENVIRONMENT_CLOSED" });
  });
});
