import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { delay, type Slot, slotKey } from "@hone/core";
import { silentLogger } from "@hone/telemetry";
import { eventually } from "@hone/testing";
import { testConfig, testJobs, testRun } from "../../testing/fake-run.ts";
import { MemoryWorld } from "../../testing/memory-world.ts";
import { RunReporter } from "../report/run-reporter.ts";
import { NO_WAIT } from "../report/run-status.ts";
import type { OpenRollout, PipelineView } from "./find-cause-of-wait.ts";
import type { JobQueue } from "./jobs.ts";
import { RolloutGatherer } from "./rollout-gatherer.ts";
import { RolloutInbox } from "./rollout-inbox.ts";
import { RolloutTraces } from "./rollout-traces.ts";

/* These tests use queues that acknowledge jobs and then lose them, or play them later. */

const DEADLINE_MS = 100;
const SILENCE_MS = 50;
const ignore = () => undefined;

describe("RolloutGatherer", () => {
  test("publishes lost jobs again with a repetition that the queue accepts", async () => {
    await using lossy = gatherFromLossyQueue(0);
    const rollouts = await lossy.gathered;
    assert.deepEqual(
      rollouts.map(({ slot }) => slotKey(slot)),
      lossy.jobs.map(({ slot }) => slotKey(slot)),
    );
    assert.deepEqual(lossy.repetitions, [0, 0, 0, 0, 1, 1, 1, 1]);
  });

  test("publishes no job again while the queue has jobs of the run", async () => {
    await using lossy = gatherFromLossyQueue(4);
    await Promise.race([lossy.gathered, delay(5 * (DEADLINE_MS + SILENCE_MS))]);
    assert.deepEqual(lossy.repetitions, [0, 0, 0, 0]);
  });

  test("publishes no job again of a rollout that has ended and waits for rewards", async () => {
    const open = [0, 1].map((index) => ({ slot: `train.1.0.${index}`, sinceMs: 0 }));
    await using lossy = gatherFromLossyQueue(0, open);
    await eventually("the others to be published again", () => lossy.repetitions.length >= 6);
    await Promise.race([lossy.gathered, delay(5 * (DEADLINE_MS + SILENCE_MS))]);
    assert.deepEqual(lossy.repetitions, [0, 0, 0, 0, 1, 1], "and these only once, as they then came");
  });

  test("has no more jobs in the queue than rollout.maxConcurrency", async () => {
    const waiting: Array<() => void> = [];
    let most = 0;
    await using limited = gatherFrom({
      rollout: { maxConcurrency: 2 },
      queueOf: (world) => ({
        ...world.jobs,
        jobsOf: async () => waiting.length,
        async publish(run, job, options) {
          waiting.push(() => void world.jobs.publish(run, job, options));
          most = Math.max(most, waiting.length);
          return true;
        },
      }),
    });
    let played = 0;
    while (played < limited.jobs.length) {
      await eventually("the queue to be full", () => waiting.length === 2 || played === 3);
      waiting.shift()?.();
      played++;
    }
    const rollouts = await limited.gathered;
    assert.deepEqual([rollouts.length, most], [4, 2]);
  });

  test("has no more jobs of a part out than its maxConcurrency, and holds up no other part", async () => {
    const out: Array<{ part: string; play: () => void }> = [];
    const source = { source: "environment", environment: "frozen_lake", seeds: { from: 0, to: 9 } };
    const parts = [
      { name: "slow", tasks: source, maxConcurrency: 1 },
      { name: "fast", tasks: source },
    ];
    await using limited = gatherFrom({
      dataset: { train: { source: "mix", parts } },
      partOf: ({ task }) => (task === 0 ? "slow" : "fast"),
      queueOf: (world) => ({
        ...world.jobs,
        async publish(run, job, options) {
          out.push({ part: job.task.part, play: () => void world.jobs.publish(run, job, options) });
          return true;
        },
      }),
    });
    const partsOut = () => out.map(({ part }) => part).sort();
    await eventually("the other part's jobs to be out", () => out.length === 3);
    await delay(250); // the limit looks several times
    assert.deepEqual(partsOut(), ["fast", "fast", "slow"]);
    const [slow] = out.splice(
      out.findIndex(({ part }) => part === "slow"),
      1,
    );
    slow?.play();
    await eventually("the part's next job", () => out.length === 3);
    assert.deepEqual(partsOut(), ["fast", "fast", "slow"]);
    for (const { play } of out) play();
    assert.equal((await limited.gathered).length, 4);
  });
});

/** @param jobsLeft number of the run's jobs that the queue reports. */
function gatherFromLossyQueue(jobsLeft: number, open: readonly OpenRollout[] = []) {
  const repetitions: number[] = [];
  const queueOf = (world: MemoryWorld): JobQueue => ({
    ...world.jobs,
    async publish(publisher, job, options) {
      repetitions.push(options.repetition);
      return options.repetition === 0 ? true : world.jobs.publish(publisher, job, options);
    },
  });
  return { repetitions, ...gatherFrom({ queueOf, jobsLeft, open }) };
}

/** Gathers four rollouts. @param rollout and dataset are keys of the run file, @param partOf the part of a mix that a slot is of. */
function gatherFrom({
  queueOf,
  jobsLeft = 0,
  rollout = {},
  dataset,
  partOf = () => "",
  open = [],
}: {
  queueOf: (world: MemoryWorld) => JobQueue;
  jobsLeft?: number;
  rollout?: Readonly<Record<string, unknown>>;
  dataset?: Readonly<Record<string, unknown>>;
  partOf?: (slot: Slot) => string;
  open?: readonly OpenRollout[];
}) {
  const config = testConfig({
    rollout: { tasksPerStep: 2, groupSize: 2, deadlineMs: DEADLINE_MS, ...rollout },
    ...(dataset !== undefined && { dataset }),
  });
  const run = testRun({ config });
  const world = new MemoryWorld(run);
  const stopping = new AbortController();
  const { signal } = stopping;
  const logger = silentLogger();
  const view: PipelineView = {
    kind: "seen",
    silent: [],
    jobs: jobsLeft,
    jobsPending: jobsLeft,
    jobsInWork: 0,
    unscored: 0,
    episodes: { bytes: 0, maxBytes: undefined, isFull: false, firstSequence: 1, runs: [] },
    replicas: [],
    open,
  };
  const status = {
    runId: run.runId,
    phase: "rollout",
    version: 0,
    location: "",
    digest: "",
    epoch: 1,
    totalSteps: 1,
    configJson: "",
    oldestVersion: 0,
    tokenizerDigest: "",
    resumption: 0,
    quantization: "none",
    ...NO_WAIT,
  } as const;
  const gatherer = new RolloutGatherer({
    run,
    jobs: queueOf(world),
    rollouts: world,
    pipeline: { look: async () => view },
    inbox: new RolloutInbox(() => false, 1),
    progress: { version: 0, recovery: undefined, neededFrom: 1 },
    traces: new RolloutTraces(),
    reporter: new RunReporter(status, {
      board: world.board,
      events: world.eventSink,
      logger,
      signal,
      onOwnershipLost: ignore,
    }),
    logger,
    signal,
    silenceMs: SILENCE_MS,
  });
  const reading = gatherer.read();
  const jobs = testJobs(1, partOf);
  const gathered = gatherer.gather("step 1", jobs, ignore);
  gathered.catch(ignore);
  return {
    jobs,
    gathered,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await reading;
    },
  };
}
