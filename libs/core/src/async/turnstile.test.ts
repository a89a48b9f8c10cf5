import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { delay } from "./delay.ts";
import { Turnstile } from "./turnstile.ts";

/** Keeps the processor busy, as real work after a wait does. */
function work(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

describe("Turnstile", () => {
  test("resolves its waits in the order of arrival", async () => {
    const turnstile = new Turnstile();
    const passed: number[] = [];
    await Promise.all([1, 2, 3].map((id) => turnstile.pass().then(() => passed.push(id))));
    await turnstile.pass().then(() => passed.push(4));
    assert.deepEqual(passed, [1, 2, 3, 4]);
  });

  test("lets timers fire between waits that end at the same moment", async () => {
    const turnstile = new Turnstile();
    let worked = 0;
    const all = Promise.all(
      Array.from({ length: 50 }, async () => {
        await delay(5);
        await turnstile.pass();
        work(2);
        worked++;
      }),
    );
    const seen: number[] = [];
    const clock = setInterval(() => seen.push(worked), 1);
    await all;
    clearInterval(clock);
    // Without the turnstile the interval would fire only after all the work is done.
    const between = new Set(seen.filter((count) => count > 0 && count < 50));
    assert.ok(between.size > 10, `the clock ticked ${between.size} times between the first and the last`);
  });
});
