import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { delay, slotKey } from "@hone/core";
import { silentLogger } from "@hone/telemetry";
import { eventually } from "@hone/testing";
import { testConfig, testJobs, testRun } from "../../testing/fake-run.ts";
import { MemoryWorld } from "../../testing/memory-world.ts";
import { JobIssuer } from "./job-issuer.ts";
import { RolloutInbox } from "./rollout-inbox.ts";
import { RolloutTraces } from "./rollout-traces.ts";

/** Long enough for a limit to look several times. */
const SOME_LOOKS_MS = 250;

describe("JobIssuer", () => {
  /** A run on a slow part, of which one job may be out, and a fast one. A step has two tasks, the first of which is slow. */
  function world() {
    const stopping = new AbortController();
    const source = { source: "environment", environment: "frozen_lake", seeds: { from: 0, to: 9 } };
    const parts = [
      { name: "slow", tasks: source, maxConcurrency: 1 },
      { name: "fast", tasks: source },
    ];
    const run = testRun({
      config: testConfig({
        rollout: { tasksPerStep: 2, groupSize: 2 },
        dataset: { train: { source: "mix", parts } },
      }),
    });
    const published: string[] = [];
    const issuer = new JobIssuer({
      run,
      jobs: {
        ...new MemoryWorld(run).jobs,
        waitingJobs: async () => 0,
        publish: async (_, { slot }) => published.push(slotKey(slot)) > 0,
      },
      inbox: new RolloutInbox(() => false, 1),
      traces: new RolloutTraces(),
      logger: silentLogger(),
      signal: stopping.signal,
    });
    return { issuer, published, [Symbol.dispose]: () => stopping.abort() };
  }
  const jobsOf = (step: number) => testJobs(step, ({ task }) => (task === 0 ? "slow" : "fast"));
  const isAs = (published: readonly string[], slots: readonly string[]) =>
    [...published].sort().join() === [...slots].sort().join();

  test("publishes later steps of a part while another part's limit holds back jobs of an earlier one", async () => {
    using issued = world();
    const [first, second] = [jobsOf(1), jobsOf(2)];
    issued.issuer.issue(first).catch(() => undefined);
    issued.issuer.issue([...first, ...second]).catch(() => undefined);
    const fast = ["train.1.1.0", "train.1.1.1", "train.2.1.0", "train.2.1.1"];
    await eventually("the fast jobs of both steps", () => issued.published.length === 5);
    await delay(SOME_LOOKS_MS);
    assert.ok(isAs(issued.published, ["train.1.0.0", ...fast]), issued.published.join());
    assert.deepEqual(issued.issuer.unissued, {
      count: 3,
      reason: "maxConcurrency of the part slow allows 1 at once",
    });
    issued.issuer.arrived(first[0]!.slot);
    await eventually("the slow part's next job", () => issued.published.length === 6);
    assert.equal(issued.published.at(-1), "train.1.0.1");
  });

  test("counts no job that was given up, and publishes none that is", async () => {
    using issued = world();
    issued.issuer.issue(jobsOf(1)).catch(() => undefined);
    await eventually("the jobs that may be out", () => issued.published.length === 3);
    issued.issuer.issue(jobsOf(2)).catch(() => undefined);
    await eventually("those of the other step", () => issued.published.length === 6);
    assert.ok(isAs(issued.published.slice(3), ["train.2.0.0", "train.2.1.0", "train.2.1.1"]));
  });

  test("publishes the lost job of a part again whose limit it reaches", async () => {
    using issued = world();
    const [job] = jobsOf(1);
    const { signal } = new AbortController();
    const unpublished = { count: 0, reason: "" };
    await issued.issuer.publish([job!], unpublished, signal);
    await issued.issuer.publish([job!], unpublished, signal, 1);
    assert.deepEqual(issued.published, ["train.1.0.0", "train.1.0.0"]);
    assert.equal(unpublished.count, 0);
  });
});
