import assert from "node:assert/strict";
import { test } from "node:test";
import { runIdOf } from "@hone/core";
import { eventually } from "@hone/testing";
import { publishRequest, untilEnded } from "../support/follow.ts";
import { brokenPromises } from "../support/inspect/asynchronous-run.ts";
import { leftoversOf, untilTidy } from "../support/inspect/leftovers.ts";
import { assertRepeatable } from "../support/inspect/weights.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/*
 * Kills each process of a stack, one after the other, while a run trains a step and plays the rollouts of later ones. The run
 * writes its optimizer every fourth step only: after the death of the trainer the steps since then are trained again from what the
 * ledger recorded, and must make the committed weights bit by bit, or the run fails. At the end all of its steps are trained again.
 */

const VICTIMS = [
  "trainer",
  "agent-rollout",
  "inference-gateway",
  "judge",
  "dataset",
  "tracer",
  "nats-server",
  "postgres",
  "trainer",
] as const;
const SHAPE = { steps: 3 * (VICTIMS.length + 1), tasksPerStep: 4, maxStaleness: 2 };
const DEADLINE_MS = 900_000;
const STEP_DEADLINE_MS = 240_000;
const TIDY_DEADLINE_MS = 120_000;

async function versionOf({ sql }: TestStack, runId: string): Promise<number> {
  const [row] = await sql<{ version: number | null }[]>`
    select version from trainer.runs where run_id = ${runId}`;
  return row?.version ?? -1;
}

test("an asynchronous run whose processes are killed loses nothing, trains nothing twice, and repeats its bytes", {
  timeout: DEADLINE_MS,
}, async () => {
  await using stack = await startStack();
  const file = await lakeRun({
    name: "killed",
    ...SHAPE,
    minibatches: 2,
    warmStartTasks: 64,
    evalTasks: 10,
    stateEvery: 4,
    environment: { stepDelayMs: 40, stepDelaySigma: 1.5 },
    keepsRollouts: true,
  });
  const runId = runIdOf("killed", await publishRequest(stack.bus, JSON.stringify(file)));
  for (const [i, victim] of VICTIMS.entries()) {
    const due = 3 * (i + 1) - 1;
    await eventually(`version ${due}`, async () => (await versionOf(stack, runId)) >= due, {
      deadlineMs: STEP_DEADLINE_MS,
    });
    await stack.kill(victim);
  }
  await untilEnded(stack, runId, DEADLINE_MS);
  const [run] = await stack.sql<{ stage: string; end_reason: string }[]>`
    select stage, end_reason from trainer.runs where run_id = ${runId}`;
  assert.deepEqual(run, { stage: "completed", end_reason: "" });
  assert.deepEqual(await brokenPromises(stack, runId, SHAPE), []);
  await assertRepeatable(stack, file, runId, DEADLINE_MS);
  await untilTidy(() => leftoversOf(stack), TIDY_DEADLINE_MS);
});
