import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CommandLine } from "../support/command-line.ts";
import { type FinishedRun, runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { REPOSITORY, startStack, type TestStack } from "../support/stack.ts";

/* Runs keep their rollouts, and `hone replay` trains them again, with the same settings and with another loss. */

const SHAPE = { steps: 3, tasksPerStep: 4, minibatches: 2, warmStartTasks: 64, evalTasks: 10 };
const DEADLINE_MS = 300_000;

describe("hone replay", () => {
  let stack: TestStack;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack?.[Symbol.asyncDispose]());

  async function recordedRun(name: string, maxStaleness: number): Promise<FinishedRun> {
    const environment = { stepDelayMs: 5 };
    const run = await lakeRun({ ...SHAPE, name, maxStaleness, keepsRollouts: true, environment });
    return runToEnd(stack, run, { deadlineMs: DEADLINE_MS });
  }

  async function replay(...args: readonly string[]): Promise<{ code: number | null; output: string }> {
    const { stateFolder } = stack;
    const command = new CommandLine(["replay", ...args], { stateFolder, userFolder: REPOSITORY });
    const code = await command.ended;
    return { code, output: command.output + command.errors };
  }

  for (const [name, maxStaleness] of [
    ["synchronous", 0],
    ["asynchronous", 1],
  ] as const) {
    test(`makes the same weights from the rollouts of a run that is ${name}`, async () => {
      const { runId } = await recordedRun(name, maxStaleness);
      const { code, output } = await replay(runId);
      assert.equal(code, 0, output);
      assert.match(output, /version 3 has the same weights in both, bit for bit/);
      const digests = await stack.sql<{ digests: string }[]>`
        select string_agg(state_digest, ' ' order by version) as digests from trainer.steps
        where run_id = ${runId} or run_id like ${`${name}-replay-%`} group by run_id`;
      assert.equal(digests.length, 2);
      assert.equal(digests[0]?.digests, digests[1]?.digests);
      const played = await stack.sql`
        select slot from tracer.rollouts where run_id like ${`${name}-replay-%`} and split = 'train'`;
      assert.equal(played.length, 0, "the replay played rollouts of its own");
    });
  }

  test("trains them with another loss, and shows both runs beside each other", async () => {
    const { runId } = await recordedRun("again", 0);
    const { code, output } = await replay(runId, "--set", "algorithm.loss.kind=gspo,trainer.epochs=1");
    assert.equal(code, 0, output);
    assert.match(output, /version 3 has other weights/);
    assert.match(output, /^step +loss +replay +grad_norm +replay/m);
    assert.equal(output.match(/^[1-3] +-?[\d.]+ +-?[\d.]+ /gm)?.length, 3, output);
  });

  test("says what is wrong with its arguments", async () => {
    const run = await lakeRun({ ...SHAPE, steps: 1, name: "forgetful" });
    const { runId } = await runToEnd(stack, run, { deadlineMs: DEADLINE_MS });
    for (const [args, message] of [
      [[runId], /forgetful-\d+ kept no rollouts in .*trainer\.keepRollouts: true/],
      [["../elsewhere"], /\.\.\/elsewhere is not the id of a run/],
      [[runId, "--set", "rollout.groupSize=2"], /give keys of algorithm or trainer/],
    ] as const) {
      const { code, output } = await replay(...args);
      assert.notEqual(code, 0);
      assert.match(output, message);
    }
  });
});
