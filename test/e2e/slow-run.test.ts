import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { RunConfig } from "@hone/config";
import { runIdOf } from "@hone/core";
import { subjects } from "@hone/messaging";
import { eventually } from "@hone/testing";
import { publishRequest, runToEnd, stageOf } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/* Rollouts of a long tail: a slow run beside another one, and a run that ends those that take longer than most. */

const CONCURRENCY = 8;
const SLOW_AT_ONCE = 6;
const HELD = /(\d+) jobs are not published yet \(rollout\.maxConcurrency allows 6 at once\)/;
const SLOW_PART_AT_ONCE = 3;
const PART_HELD =
  /waits for (\d+) of 32 rollouts .*; (\d+) jobs are not published yet \(maxConcurrency of the part slow allows 3 at once\)/;
const DEADLINE_MS = 200_000;
/** Longer than the test, so that a rollout of the slow run that is played is never done in time. */
const SLOW_STEP_MS = 200_000;

async function run(name: string, steps: number): Promise<RunConfig> {
  return lakeRun({ name, steps, tasksPerStep: 2, minibatches: 1, warmStartTasks: 32, evalTasks: 1 });
}

async function slowRun(name: string): Promise<RunConfig> {
  const { rollout, dataset, ...rest } = await run(name, 0);
  assert.ok(dataset.train.source === "environment");
  const config = { ...dataset.train.config, stepDelayMs: SLOW_STEP_MS };
  return {
    ...rest,
    rollout: { ...rollout, deadlineMs: 10 * SLOW_STEP_MS, maxConcurrency: SLOW_AT_ONCE },
    dataset: { ...dataset, train: { ...dataset.train, config } },
  };
}

/** A warm start on two parts, half of whose rollouts are of the slow one. */
async function mixWithSlowPart(name: string): Promise<RunConfig> {
  const { dataset, ...rest } = await slowRun(name);
  const { train } = dataset;
  assert.ok(train.source === "environment");
  const parts = [
    { name: "slow", tasks: train, maxConcurrency: SLOW_PART_AT_ONCE },
    { name: "fast", tasks: { ...train, config: { ...train.config, stepDelayMs: 0 } } },
  ];
  const { maxConcurrency: _, ...rollout } = rest.rollout;
  return { ...rest, rollout, dataset: { ...dataset, train: { source: "mix", parts } } };
}

/** A run whose rollouts take times of a long tail, half of which its deadline leaves. */
async function runWithTail(name: string): Promise<RunConfig> {
  const { rollout, dataset, ...rest } = await run(name, 3);
  assert.ok(dataset.train.source === "environment");
  const config = { ...dataset.train.config, stepDelayMs: 20, stepDelaySigma: 1.5 };
  return {
    ...rest,
    rollout: { ...rollout, deadline: { quantile: 0.5, factor: 1, window: 16 } },
    dataset: { ...dataset, train: { ...dataset.train, config } },
  };
}

describe("long tails", { timeout: 600_000 }, () => {
  let stack: TestStack;
  before(async () => {
    stack = await startStack({ env: { HONE_ROLLOUT_CONCURRENCY: String(CONCURRENCY) } });
  });
  after(() => stack?.[Symbol.asyncDispose]());

  async function jobsOf(runId: string): Promise<number> {
    const { state } = await stack.bus.manager.streams.info("JOBS", {
      subjects_filter: subjects.rolloutJob(runId),
    });
    return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
  }

  async function epochOf(runId: string): Promise<number> {
    const [row] = await stack.sql<
      { epoch: number }[]
    >`select epoch from trainer.runs where run_id = ${runId}`;
    return Number(row?.epoch);
  }

  test("a run with rollout.maxConcurrency leaves the other slots to other runs, and says what its own jobs wait for", async () => {
    const file = await slowRun("slow");
    const slow = runIdOf(file.name, await publishRequest(stack.bus, JSON.stringify(file)));
    const jobs = () => jobsOf(slow);
    await eventually("the slow run to have as many jobs out as it may", async () => (await jobs()) > 0, {
      deadlineMs: DEADLINE_MS,
    });
    const fast = await runToEnd(stack, await run("fast", 2), { deadlineMs: DEADLINE_MS });
    assert.equal(fast.steps.length, 2);
    assert.equal(await stageOf(stack, slow), "active");
    assert.equal(await jobs(), SLOW_AT_ONCE);
    assert.equal(HELD.exec((await stack.hone("status")).output)?.[1], "26");

    // The next owner of the run counts the jobs of the one before it.
    const before = await epochOf(slow);
    await stack.kill("trainer");
    await eventually(
      "the next trainer to hold jobs back",
      async () => {
        assert.ok((await jobs()) <= SLOW_AT_ONCE);
        return (await epochOf(slow)) > before && HELD.test((await stack.hone("status")).output);
      },
      { deadlineMs: DEADLINE_MS },
    );
    assert.equal(await jobs(), SLOW_AT_ONCE);
    await stack.hone("cancel", slow);
  });

  test("a slow part of a mix with maxConcurrency leaves the other slots to the other parts", async () => {
    const file = await mixWithSlowPart("slow-part");
    const mix = runIdOf(file.name, await publishRequest(stack.bus, JSON.stringify(file)));
    /** Whether what is missing is out or held back, so that all rollouts of the other part have arrived. */
    const isAlone = async () => {
      const [, missing, held] = PART_HELD.exec((await stack.hone("status")).output) ?? [];
      return Number(held) > 0 && Number(missing) === Number(held) + (await jobsOf(mix));
    };
    await eventually("all jobs but the slow part's to be done", isAlone, { deadlineMs: DEADLINE_MS });
    assert.equal(await jobsOf(mix), SLOW_PART_AT_ONCE);

    await stack.kill("trainer");
    await eventually("the next trainer to hold the part's jobs back", isAlone, { deadlineMs: DEADLINE_MS });
    assert.equal(await jobsOf(mix), SLOW_PART_AT_ONCE);
    await stack.hone("cancel", mix);
  });

  test("a deadline derived from what rollouts took ends those that take longer, and says so", async () => {
    const file = await runWithTail("tail");
    const { steps } = await runToEnd(stack, file, { deadlineMs: DEADLINE_MS });
    const figures = steps.map(({ metrics }) => metrics);
    assert.equal(figures[0]?.["deadline/ms"], file.rollout.deadlineMs);
    assert.equal(figures[0]["deadline/ended"], 0);
    for (const [i, metrics] of figures.entries()) {
      const before = figures[i - 1];
      if (before === undefined) continue;
      assert.equal(metrics["deadline/ms"], Math.max(100, Math.ceil(before["deadline/quantile_ms"]!)));
      assert.equal(metrics["deadline/ended"], metrics["outcome/timed_out"]);
    }
    assert.ok(
      figures.some((metrics) => metrics["deadline/ended"]! > 0),
      JSON.stringify(figures),
    );
    assert.ok(
      steps.some(({ troubles }) =>
        troubles?.outcomes.some(({ reason }) => /longer than its limit of \d+ ms/.test(reason)),
      ),
    );
  });
});
