import assert from "node:assert/strict";
import { test } from "node:test";
import { runToEnd } from "../support/follow.ts";
import { leftoversOf, untilTidy } from "../support/inspect/leftovers.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack } from "../support/stack.ts";

/* Runs steps that start more rollouts than they train: the others are dropped, and nothing is left of them. */

const STEPS = 4;
const DEADLINE_MS = 300_000;
const TIDY_DEADLINE_MS = 60_000;

test("a step trains the groups that finish first, and drops the rest", async () => {
  await using stack = await startStack();
  const run = await lakeRun({
    name: "redundancy",
    steps: STEPS,
    tasksPerStep: 8,
    minibatches: 2,
    warmStartTasks: 100,
    evalTasks: 10,
    redundancy: { tasks: 4, rollouts: 2 },
  });
  const { runId } = await runToEnd(stack, run, { deadlineMs: DEADLINE_MS });
  const steps = await stack.sql<{ metrics: Record<string, number> }[]>`
    select metrics from trainer.steps where run_id = ${runId} and version > 0 order by version`;
  assert.equal(steps.length, STEPS);
  for (const { metrics } of steps) {
    assert.equal(metrics.episodes, 8 * 8);
    assert.equal(metrics["rollouts/unneeded"], 12 * 10 - 8 * 8);
  }
  const groups = await stack.sql<{ step: string; count: number }[]>`
    select split_part(slot, '.', 2) as step, count(*)::int as count
    from trainer.ledger where run_id = ${runId} and slot like 'train.%' group by step order by step`;
  assert.deepEqual(
    groups.map(({ count }) => count),
    [64, 64, 64, 64],
  );
  await untilTidy(() => leftoversOf(stack), TIDY_DEADLINE_MS);
});
