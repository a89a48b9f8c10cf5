import { test } from "node:test";
import { runToEnd } from "../support/follow.ts";
import { weightDigests } from "../support/inspect/weights.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack } from "../support/stack.ts";
import { compareWithRecord } from "./weights.ts";

/* Runs the warm start and 20 steps of a run on the lake (test/support/lake.yaml). Evaluations are shortened, as they do not affect weights. */

const RUN = {
  name: "golden-lake",
  steps: 20,
  tasksPerStep: 32,
  minibatches: 8,
  warmStartTasks: 400,
  evalTasks: 1,
};
const DEADLINE_MS = 600_000;

test("20 steps on the lake end with the recorded weights", async (context) => {
  await using stack = await startStack();
  const { runId } = await runToEnd(stack, await lakeRun(RUN), { deadlineMs: DEADLINE_MS });
  compareWithRecord(context, "lake", await weightDigests(stack, runId));
});
