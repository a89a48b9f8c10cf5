import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type FinishedRun, runToEnd } from "../support/follow.ts";
import { weightDigests } from "../support/inspect/weights.ts";
import { type LakeRunOptions, lakeRun } from "../support/lake-run.ts";
import { CommandLine } from "../support/processes/command-line.ts";
import { REPOSITORY, startStack, type TestStack } from "../support/stack.ts";

/* Runs keep their rollouts, and `hone replay` trains them again, with the same settings and with another loss, from the start or from a step on. */

const SHAPE = { steps: 3, tasksPerStep: 4, minibatches: 2, warmStartTasks: 64, evalTasks: 10 };
const DEADLINE_MS = 300_000;

describe("hone replay", () => {
  let stack: TestStack;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack?.[Symbol.asyncDispose]());

  async function recordedRun(
    name: string,
    maxStaleness: number,
    options: Partial<LakeRunOptions> = {},
  ): Promise<FinishedRun> {
    const environment = { stepDelayMs: 5 };
    const run = await lakeRun({ ...SHAPE, name, maxStaleness, keepsRollouts: true, environment, ...options });
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
    assert.equal(output.match(/^[1-3] +-?\d[\d.e-]* +-?\d[\d.e-]* /gm)?.length, 3, output);
  });

  /** The id of the newest run whose name is that of another with `-replay` behind it. */
  async function newestReplay(name: string): Promise<string> {
    const [row] = await stack.sql<{ run_id: string }[]>`
      select run_id from trainer.runs where name = ${`${name}-replay`} order by request_sequence desc limit 1`;
    assert.ok(row !== undefined, `${name} was not replayed`);
    return row.run_id;
  }

  const LATER = { steps: 5, keepStates: 2, stateEvery: 100 };
  for (const [name, maxStaleness, options] of [
    [
      "critical",
      0,
      {
        advantage: { kind: "gae", gamma: 1, lambda: 0.9, whiten: true },
        critic: {},
        kl: { coefficient: 0.05 },
      },
    ],
    ["ahead", 1, {}],
  ] as const) {
    test(`goes on from a kept state to the same weights: ${name}`, async () => {
      const { runId } = await recordedRun(name, maxStaleness, {
        ...LATER,
        ...(options as Partial<LakeRunOptions>),
      });
      const { code, output } = await replay(runId, "--from", "3");
      assert.equal(code, 0, output);
      assert.match(output, /version 5 has the same weights in both, bit for bit/);
      assert.match(output, /^3 +-?\d[\d.e-]* +-?\d[\d.e-]* /m);
      assert.doesNotMatch(output, /^2 +-?\d[\d.e-]* +-?\d[\d.e-]* /m);
      const again = await newestReplay(name);
      const recorded = await weightDigests(stack, runId);
      assert.equal(recorded.length, 6);
      assert.deepEqual(await weightDigests(stack, again), recorded.slice(2));
      const played = await stack.sql`
        select slot from tracer.rollouts where run_id = ${again} and split <> 'eval'`;
      assert.equal(played.length, 0, "the replay played rollouts of its own");
    });
  }

  test("goes on from an earlier kept state with other settings, and says where it begins", async () => {
    const { runId } = await recordedRun("earlier", 0, LATER);
    const { code, output } = await replay(runId, "--from", "4", "--set", "algorithm.loss.kind=gspo");
    assert.equal(code, 0, output);
    assert.match(
      output,
      /no state of version 3 is kept, so the replay begins with version 2 and trains step 3 first/,
    );
    const [recorded, again] = [runId, await newestReplay("earlier")].map((each) =>
      weightDigests(stack, each),
    );
    const [then, now] = [await recorded!, await again!];
    assert.equal(now.length, 4);
    assert.equal(now[0], then[2]);
    assert.notEqual(now[1], then[3]);
    for (const [args, message] of [
      [["--from", "6"], /--from 6 is after the last step: trainer\.steps is 5/],
      [["--from", "0"], /--from 0 is not a step; steps count from 1/],
      [
        ["--from", "5", "--set", "algorithm.advantage.kind=gae,trainer.critic={}"],
        /has no critic to go on with/,
      ],
    ] as const) {
      const refused = await replay(runId, ...args);
      assert.notEqual(refused.code, 0);
      assert.match(refused.output, message);
    }
  });

  test("says what is wrong with its arguments", async () => {
    const run = await lakeRun({ ...SHAPE, steps: 1, name: "forgetful" });
    const { runId } = await runToEnd(stack, run, { deadlineMs: DEADLINE_MS });
    for (const [args, message] of [
      [[runId], /forgetful-\d+ kept no rollouts in .*trainer\.keepRollouts: true/],
      [
        [runId, "--from", "2"],
        /kept no state of a version before step 2 in .*kept-states; .*trainer\.keepStates/,
      ],
      [["../elsewhere"], /\.\.\/elsewhere is not the id of a run/],
      [[runId, "--set", "rollout.groupSize=2"], /give keys of algorithm or trainer/],
    ] as const) {
      const { code, output } = await replay(...args);
      assert.notEqual(code, 0);
      assert.match(output, message);
    }
  });
});
