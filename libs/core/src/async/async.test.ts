import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DeadlineError, RetryableError, TerminalError } from "../errors.ts";
import { BoundedQueue } from "./bounded-queue.ts";
import { deadline } from "./deadline.ts";
import { delay } from "./delay.ts";
import { pause } from "./pause.ts";
import { raceAbortable } from "./race-abortable.ts";
import { retry } from "./retry.ts";

const never = () => new Promise<never>(() => undefined);

describe("delay()", () => {
  test("rejects with the reason of a signal that is aborted already", async () => {
    await assert.rejects(delay(60_000, { signal: AbortSignal.abort("gone") }), (reason) => reason === "gone");
  });

  test("rejects at once when the signal aborts while it waits", async () => {
    const controller = new AbortController();
    const waiting = delay(60_000, { signal: controller.signal });
    controller.abort(new TerminalError("STOP", "stop"));
    await assert.rejects(waiting, { code: "STOP" });
  });
});

describe("pause()", () => {
  test("ends after its time, and early when the signal aborts, without a failure", async () => {
    await pause(1, new AbortController().signal);
    const controller = new AbortController();
    const waiting = pause(60_000, controller.signal);
    controller.abort(new TerminalError("STOP", "stop"));
    await waiting;
  });
});

describe("deadline()", () => {
  test("names the work that did not end in time in its error, and aborts that work", async () => {
    let passed: AbortSignal | undefined;
    const waiting = deadline("the answer", 5, (signal) => {
      passed = signal;
      return never();
    });
    await assert.rejects(
      waiting,
      (error) => error instanceof DeadlineError && /the answer/.test(error.message),
    );
    assert.equal(passed?.aborted, true);
  });

  test("returns the result of the work, and rejects when the caller aborts", async () => {
    assert.equal(await deadline("it", 1_000, async () => 7), 7);
    await assert.rejects(
      deadline("it", 60_000, never, { signal: AbortSignal.abort("caller") }),
      (reason) => reason === "caller",
    );
  });
});

describe("raceAbortable()", () => {
  test("leaves no listener behind", async () => {
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--;
      remove(...args);
    };
    assert.equal(await raceAbortable(Promise.resolve(1), signal), 1);
    assert.equal(listeners, 0);
  });
});

describe("retry()", () => {
  test("tries again after retryable failures and passes the attempt's number", async () => {
    const seen: number[] = [];
    const result = await retry(
      async (attempt) => {
        seen.push(attempt);
        if (attempt < 3) throw new RetryableError("BUSY", "busy");
        return "done";
      },
      { minDelayMs: 1 },
    );
    assert.equal(result, "done");
    assert.deepEqual(seen, [1, 2, 3]);
  });

  test("stops at a terminal failure, at the last attempt and when the signal aborts", async () => {
    let calls = 0;
    const failing = (error: Error) => async () => {
      calls++;
      throw error;
    };
    await assert.rejects(retry(failing(new TerminalError("NO", "no"))), { code: "NO" });
    assert.equal(calls, 1);
    await assert.rejects(
      retry(failing(new RetryableError("BUSY", "busy")), { maxAttempts: 2, minDelayMs: 1 }),
    );
    assert.equal(calls, 3);
    const controller = new AbortController();
    const waiting = retry(failing(new RetryableError("BUSY", "busy")), {
      minDelayMs: 60_000,
      signal: controller.signal,
      onRetry: () => controller.abort("enough"),
    });
    await assert.rejects(waiting, (reason) => reason === "enough");
  });
});

describe("BoundedQueue", () => {
  test("refuses items when it is full, and yields what was queued before it was closed", async () => {
    const queue = new BoundedQueue<number>(2);
    assert.deepEqual([queue.offer(1), queue.offer(2), queue.offer(3)], [true, true, false]);
    queue.close();
    assert.equal(queue.offer(4), false);
    const got: number[] = [];
    for await (const item of queue) got.push(item);
    assert.deepEqual(got, [1, 2]);
  });

  test("wakes a waiting consumer", async () => {
    const queue = new BoundedQueue<string>(1);
    const first = queue[Symbol.asyncIterator]().next();
    queue.offer("late");
    assert.deepEqual(await first, { done: false, value: "late" });
  });
});
