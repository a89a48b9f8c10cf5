import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { eventually } from "@hone/testing";
import { ENOUGH_WAITING, FREE_JOBS, JobPacer } from "./job-pacer.ts";

describe("JobPacer", () => {
  /** A queue with a number of waiting jobs, and a record of how often the pacer checked it and what it reported. */
  const world = (waiting: number) => {
    const ended = new AbortController();
    const state = { waiting, looks: 0, held: [] as (number | undefined)[], left: 0 };
    const pacer = new JobPacer({
      waitingJobs: async () => {
        state.looks++;
        return state.waiting;
      },
      onHeld: (count) => state.held.push(count),
      signal: ended.signal,
    });
    const leave = async (count: number) => {
      for (let i = 0; i < count; i++) {
        await pacer.waitUntilAllowed();
        state.left++;
      }
    };
    return { state, ended, leave };
  };

  test("publishes the jobs of a usual step without a check of the queue", async () => {
    const { state, leave } = world(1_000_000);
    await leave(FREE_JOBS);
    assert.equal(state.looks, 0);
  });

  test("makes further jobs wait while enough are in the queue, reports it, and continues when they are taken", async () => {
    const { state, leave } = world(ENOUGH_WAITING);
    const all = leave(FREE_JOBS + 10);
    await eventually("the eleventh to be held", () => state.held.length > 0);
    assert.deepEqual([state.left, state.held[0]], [FREE_JOBS, ENOUGH_WAITING]);
    state.waiting = ENOUGH_WAITING - 10;
    await all;
    assert.equal(state.held.at(-1), undefined);
  });

  test("fills the queue up to its limit before it checks again, also for many concurrent calls", async () => {
    const { state, leave } = world(0);
    await Promise.all(Array.from({ length: FREE_JOBS + ENOUGH_WAITING }, () => leave(1)));
    assert.equal(state.looks, 1);
    await leave(1);
    assert.equal(state.looks, 2);
  });

  test("ends with the signal", async () => {
    const { state, ended, leave } = world(ENOUGH_WAITING);
    const all = leave(FREE_JOBS + 1);
    await eventually("it to be held", () => state.held.length > 0);
    ended.abort(new Error("cancelled"));
    await assert.rejects(all, /cancelled/);
  });
});
