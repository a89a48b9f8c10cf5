import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type FinishedRun, runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/* A run plays the rollouts of later steps while a step trains, in an environment whose steps take times of a long tail. */

const STEPS = 8;
const TASKS_PER_STEP = 4;
const MAX_STALENESS = 2;
const DEADLINE_MS = 300_000;

/** A group of the trainer's record. */
interface GroupRow {
  readonly step: number;
  readonly task: number;
  readonly trained_by: number | null;
  readonly is_given_up: boolean;
}

describe("an asynchronous run", () => {
  let stack: TestStack;
  let run: FinishedRun;
  let steps: readonly Record<string, number>[];
  before(async () => {
    stack = await startStack();
    const file = await lakeRun({
      name: "asynchronous",
      steps: STEPS,
      tasksPerStep: TASKS_PER_STEP,
      minibatches: 2,
      warmStartTasks: 64,
      evalTasks: 10,
      maxStaleness: MAX_STALENESS,
      environment: { stepDelayMs: 40, stepDelaySigma: 1.5 },
    });
    run = await runToEnd(stack, file, { deadlineMs: DEADLINE_MS });
    const rows = await stack.sql<{ metrics: Record<string, number> }[]>`
      select metrics from trainer.steps where run_id = ${run.runId} and version > 0 order by version`;
    steps = rows.map(({ metrics }) => metrics);
  });
  after(() => stack?.[Symbol.asyncDispose]());

  test("trains as many groups in each step as a synchronous run, each of them once", async () => {
    const groups = await stack.sql<GroupRow[]>`
      select step, task, trained_by, is_given_up from trainer.groups where run_id = ${run.runId}`;
    const trained = groups.filter(({ trained_by }) => trained_by !== null);
    for (let step = 1; step <= STEPS; step++) {
      const count = trained.filter(({ trained_by }) => trained_by === step).length;
      assert.equal(count, TASKS_PER_STEP, `step ${step}`);
    }
    assert.ok(groups.every(({ trained_by, is_given_up }) => (trained_by !== null) !== is_given_up));
    const [ledger] = await stack.sql<{ rollouts: number; groups: number }[]>`
      select count(*)::int as rollouts, count(distinct split_part(slot, '.', 2) || '.' || split_part(slot, '.', 3))::int as groups
      from trainer.ledger where run_id = ${run.runId} and slot like 'train.%'`;
    assert.equal(ledger?.groups, STEPS * TASKS_PER_STEP);
  });

  test("trains tokens of older versions, and none that is older than it allows", async () => {
    assert.equal(steps.length, STEPS);
    assert.ok(
      steps.some((metrics) => metrics["staleness/max"]! > 0),
      JSON.stringify(steps),
    );
    assert.ok(steps.every((metrics) => metrics["staleness/max"]! <= MAX_STALENESS));
    const [oldest] = await stack.sql<{ age: number }[]>`
      select max(version - 1 - lowest_version)::int as age from trainer.ledger
      where run_id = ${run.runId} and slot like 'train.%'`;
    assert.ok((oldest?.age ?? Number.POSITIVE_INFINITY) <= MAX_STALENESS);
  });

  test("leaves nothing to play when its last step is trained", () => {
    assert.equal(steps.at(-1)?.["groups/open"], 0);
  });
});
