import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { eventually } from "@hone/testing";
import { JobLimit } from "./job-limit.ts";

describe("JobLimit", () => {
  /** A queue that holds the published jobs until they are taken out of it. */
  const world = (most: number, found = 0) => {
    const ended = new AbortController();
    const { signal } = ended;
    const state = { inQueue: found, most: found, published: 0, held: 0, counts: 0 };
    const limit = new JobLimit({
      most,
      jobsInQueue: async () => {
        state.counts++;
        return state.inQueue;
      },
      signal,
    });
    const publish = async () => {
      await limit.enter(signal, () => void state.held++);
      await Promise.resolve(); // the server stores a job some time after it was allowed
      state.inQueue++;
      state.published++;
      state.most = Math.max(state.most, state.inQueue);
      limit.published();
    };
    const end = () => {
      state.inQueue--;
      limit.arrived();
    };
    return { limit, state, ended, publish, end };
  };

  test("lets no more jobs into the queue than are allowed, also for many concurrent calls", async () => {
    const { state, publish, end } = world(3);
    const all = Promise.all(Array.from({ length: 20 }, publish));
    while (state.published < 20) {
      await eventually("the queue to be full", () => state.inQueue === 3 || state.published === 20);
      end();
    }
    await all;
    assert.equal(state.most, 3);
    assert.ok(state.held > 0);
  });

  test("counts the jobs that an earlier owner of the run has published", async () => {
    const { state, publish, end } = world(3, 2);
    const all = Promise.all([publish(), publish()]);
    await eventually("the second job to be held", () => state.held > 0);
    assert.equal(state.published, 1);
    end();
    await all;
    assert.equal(state.most, 3);
  });

  test("continues when jobs leave the queue without a rollout", async () => {
    const { state, publish } = world(1, 1);
    const published = publish();
    await eventually("the job to be held", () => state.held > 0);
    state.inQueue = 0; // purged
    await published;
  });

  test("ends with the signal", async () => {
    const { state, ended, publish } = world(1, 1);
    const published = publish();
    await eventually("the job to be held", () => state.held > 0);
    ended.abort(new Error("cancelled"));
    await assert.rejects(published, /cancelled/);
  });
});
