import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type FinishedRun, runToEnd } from "../support/follow.ts";
import { brokenPromises } from "../support/inspect/asynchronous-run.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/* A run plays the rollouts of later steps while a step trains, in an environment whose steps take times of a long tail. */

const SHAPE = { steps: 8, tasksPerStep: 4, maxStaleness: 2 };
const DEADLINE_MS = 300_000;

describe("an asynchronous run", () => {
  let stack: TestStack;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack?.[Symbol.asyncDispose]());

  for (const onNewVersion of ["recompute", "keep", "finish"] as const) {
    describe(`with ${onNewVersion} for generations under way`, () => {
      let run: FinishedRun;
      let steps: readonly Record<string, number>[];
      before(async () => {
        const file = await lakeRun({
          name: `asynchronous-${onNewVersion}`,
          ...SHAPE,
          onNewVersion,
          minibatches: 2,
          warmStartTasks: 64,
          evalTasks: 10,
          environment: { stepDelayMs: 40, stepDelaySigma: 1.5 },
        });
        run = await runToEnd(stack, file, { deadlineMs: DEADLINE_MS });
        const rows = await stack.sql<{ metrics: Record<string, number> }[]>`
      select metrics from trainer.steps where run_id = ${run.runId} and version > 0 order by version`;
        steps = rows.map(({ metrics }) => metrics);
      });

      test("trains as many groups in each step as a synchronous run, each of them once, and none that is too old", async () => {
        assert.deepEqual(await brokenPromises(stack, run.runId, SHAPE), []);
      });

      test("trains tokens of older versions", () => {
        assert.ok(
          steps.some((metrics) => metrics["staleness/max"]! > 0),
          JSON.stringify(steps),
        );
        assert.ok(steps.every((metrics) => metrics["staleness/max"]! <= SHAPE.maxStaleness));
      });

      test("leaves nothing to play when its last step is trained", () => {
        assert.equal(steps.at(-1)?.["groups/open"], 0);
      });
    });
  }
});
