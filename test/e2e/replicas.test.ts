import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import type { RunConfig } from "@hone/config";
import { eventually } from "@hone/testing";
import { runToEnd } from "../support/follow.ts";
import { scrape } from "../support/inspect/scrape.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/* Two processes each of agent-rollout and of the trainer on one stack: both play rollouts, and one that dies is restarted. */

const REPLICAS = ["agent-rollout", "agent-rollout-1"];
const ROLLOUTS = 48;
/** Fewer than half of the rollouts, so that one process cannot take them all. */
const CONCURRENCY = 16;
const STEP_DELAY_MS = 400;
const DEADLINE_MS = 200_000;

/** A run of a long warm start in an environment whose steps take time, so that its rollouts can be watched. */
async function slowRun(name: string): Promise<RunConfig> {
  const sizes = { steps: 0, tasksPerStep: 1, minibatches: 1, warmStartTasks: ROLLOUTS, evalTasks: 1 };
  const run = await lakeRun({ name, ...sizes });
  const { train } = run.dataset;
  assert.ok(train.source === "environment");
  const config = { ...train.config, stepDelayMs: STEP_DELAY_MS };
  return { ...run, dataset: { ...run.dataset, train: { ...train, config } } };
}

describe("a stack with replicas", { timeout: 600_000 }, () => {
  let stack: TestStack;
  before(async () => {
    stack = await startStack({
      replicas: { "agent-rollout": 2, trainer: 2 },
      env: { HONE_ROLLOUT_CONCURRENCY: String(CONCURRENCY) },
    });
  });
  after(() => stack?.[Symbol.asyncDispose]());

  const bothWork = () =>
    eventually(
      "both processes to have rollouts in flight",
      async () => {
        const found = await Promise.all(REPLICAS.map((name) => scrape(stack, name)));
        return found.every(({ sum }) => (sum("hone_rollouts_in_flight") ?? 0) > 0);
      },
      { deadlineMs: DEADLINE_MS },
    );

  async function trainedSlots(runId: string): Promise<string[]> {
    const rows = await stack.sql<{ slot: string }[]>`
      select slot from trainer.ledger where run_id = ${runId}`;
    return rows.map(({ slot }) => slot);
  }

  test("shows each process by name, and keeps a log for each", async () => {
    const names = [...REPLICAS, "trainer", "trainer-1", "judge"];
    const lines = names.map((name) => new RegExp(`^${name} +ready +process ${stack.pidOf(name)} `, "m"));
    // Right after the start, a busy machine may be too slow to answer in time.
    await eventually(
      "hone status to show each process",
      async () => {
        const { output } = await stack.hone("status");
        return lines.every((line) => line.test(output));
      },
      { deadlineMs: DEADLINE_MS },
    );
    assert.equal(stack.serviceProcesses().length, 8);
    const logs = readdirSync(path.join(stack.stateFolder, "logs"));
    assert.ok(REPLICAS.every((name) => logs.includes(`${name}.log`)));
  });

  test("shares the rollouts, restarts a killed process, and trains every rollout once", async () => {
    const undisturbed = stack.pidOf("agent-rollout");
    const run = slowRun("first").then((config) => runToEnd(stack, config, { deadlineMs: DEADLINE_MS }));
    await Promise.race([bothWork(), run]);
    await stack.kill("agent-rollout-1");
    assert.equal(stack.pidOf("agent-rollout"), undisturbed);
    const { runId } = await run;
    const slots = await trainedSlots(runId);
    assert.deepEqual([slots.length, new Set(slots).size], [ROLLOUTS, ROLLOUTS]);
    assert.match((await stack.hone("status")).output, /^agent-rollout-1 .*restarted 1 times/m);
  });

  test("gives the restarted process its share again", async () => {
    const run = slowRun("second").then((config) => runToEnd(stack, config, { deadlineMs: DEADLINE_MS }));
    await Promise.race([bothWork(), run.then(() => assert.fail("the run is over"))]);
    assert.equal(new Set(await trainedSlots((await run).runId)).size, ROLLOUTS);
  });
});
