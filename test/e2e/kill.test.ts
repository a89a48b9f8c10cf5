import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type RunEvent, RunPhase } from "@hone/proto-gen/run";
import type { Sql } from "postgres";
import { runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/* SIGKILL of each service in the middle of a step: the run goes on by itself, and ends where an undisturbed one ends. */

const RUN = { steps: 3, tasksPerStep: 8, minibatches: 2, warmStartTasks: 100, evalTasks: 10 };
/** Start-up of the killed service, the lease of a killed trainer and redeliveries included. */
const DEADLINE_MS = 150_000;

/** What a run trained: every rollout with its reward, and the weights after each step. */
async function trainedBy(sql: Sql, runId: string) {
  const rollouts = await sql`
    select slot, version, outcome, reward, advantage, sampled_tokens from trainer.ledger where run_id = ${runId} order by slot`;
  const states = await sql`
    select version, state_digest from trainer.steps where run_id = ${runId} order by version`;
  return { rollouts: rollouts.map((row) => ({ ...row })), states: states.map((row) => ({ ...row })) };
}

/** The moment of a step in which a service is at work. */
const MOMENTS: Readonly<Record<string, (event: RunEvent) => boolean>> = {
  dataset: inPhase(RunPhase.ROLLOUT, 1),
  "agent-rollout": inPhase(RunPhase.ROLLOUT, 2),
  "inference-gateway": inPhase(RunPhase.ROLLOUT, 2),
  judge: inPhase(RunPhase.ROLLOUT, 2),
  trainer: inPhase(RunPhase.TRAIN, 2),
  tracer: inPhase(RunPhase.ROLLOUT, 2),
};

function inPhase(phase: RunPhase, step: number): (event: RunEvent) => boolean {
  return ({ kind }) => kind.case === "phaseChanged" && kind.value.phase === phase && kind.value.step === step;
}

describe("a run whose services are killed", () => {
  let stack: TestStack;
  let undisturbed: Awaited<ReturnType<typeof trainedBy>>;

  before(async () => {
    stack = await startStack();
    const run = await runToEnd(stack, await lakeRun({ name: "undisturbed", ...RUN }), {
      deadlineMs: DEADLINE_MS,
    });
    undisturbed = await trainedBy(stack.sql, run.runId);
    assert.equal(undisturbed.rollouts.length, RUN.warmStartTasks + RUN.steps * RUN.tasksPerStep * 8);
    assert.equal(undisturbed.states.length, RUN.steps + 1);
  });
  after(() => stack?.[Symbol.asyncDispose]());

  test("and a second undisturbed run of the same file ends with bitwise the same weights", async () => {
    const run = await runToEnd(stack, await lakeRun({ name: "again", ...RUN }), {
      deadlineMs: DEADLINE_MS,
    });
    assert.deepEqual(await trainedBy(stack.sql, run.runId), undisturbed);
  });

  for (const [victim, isMoment] of Object.entries(MOMENTS)) {
    test(`trains the same rollouts to the same weights when ${victim} dies in the middle of a step`, async () => {
      let isKilled = false;
      const run = await runToEnd(stack, await lakeRun({ name: `without-${victim}`, ...RUN }), {
        deadlineMs: DEADLINE_MS,
        onEvent: async (event) => {
          if (isKilled || !isMoment(event)) return;
          isKilled = true;
          await stack.kill(victim);
        },
      });
      assert.ok(isKilled, "the moment never came");
      assert.deepEqual(await trainedBy(stack.sql, run.runId), undisturbed);
    });
  }
});
