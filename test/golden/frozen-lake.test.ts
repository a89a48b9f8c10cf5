import { test } from "node:test";
import { runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack } from "../support/stack.ts";
import { compareWithRecord, weightDigests } from "./weights.ts";

/* The first example as it is, cut short: warm start, 20 steps. Its evaluations train nothing and are short. */

const RUN = {
  name: "golden-lake",
  steps: 20,
  tasksPerStep: 32,
  minibatches: 8,
  warmStartTasks: 400,
  evalTasks: 1,
};
const DEADLINE_MS = 600_000;

test("20 steps of the first example end with the recorded weights", async (context) => {
  await using stack = await startStack();
  const { runId } = await runToEnd(stack, await lakeRun(RUN), { deadlineMs: DEADLINE_MS });
  compareWithRecord(context, "first example", await weightDigests(stack, runId));
});
