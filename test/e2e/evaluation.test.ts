import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { type FinishedRun, runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/* The evaluation of a trained run's policy by the command line, through the same services as its training. */

const EVAL_TASKS = 12;
const RUN = {
  name: "judged",
  steps: 1,
  tasksPerStep: 4,
  minibatches: 1,
  warmStartTasks: 60,
  evalTasks: EVAL_TASKS,
};
const RUN_DEADLINE_MS = 120_000;

interface Report {
  readonly run: string;
  readonly model: string;
  readonly evaluations: { mode: string; rollouts: number; metrics: Record<string, number> }[];
}

describe("hone eval", { timeout: 240_000 }, () => {
  let stack: TestStack;
  let finished: FinishedRun;
  let file: string;

  before(async () => {
    stack = await startStack();
    const run = await lakeRun(RUN);
    finished = await runToEnd(stack, run, { deadlineMs: RUN_DEADLINE_MS });
    file = path.join(stack.stateFolder, "run.json");
    await writeFile(file, JSON.stringify(run));
  });
  after(() => stack?.[Symbol.asyncDispose]());

  async function evaluate(...args: string[]): Promise<Report> {
    const { code, output } = await stack.hone("eval", file, ...args, "--json");
    assert.equal(code, 0, output);
    return JSON.parse(output.slice(output.indexOf("\n{\n"), output.lastIndexOf("\n}") + 2)) as Report;
  }

  test("finds of a run's policy what the run found itself, and trains nothing", async () => {
    const report = await evaluate("--model", finished.runId, "--samples", "4", "--greedy");
    assert.equal(report.model, `${finished.runId}@1`);
    const [sampled, greedy] = report.evaluations;
    const own = finished.evaluations.find(({ version, mode }) => version === 1 && mode === "greedy");
    assert.equal(greedy?.mode, "greedy");
    assert.equal(greedy.rollouts, EVAL_TASKS);
    assert.equal(greedy.metrics.success, own?.metrics.success);
    assert.equal(greedy.metrics.tokens, own?.metrics.tokens);

    assert.equal(sampled?.rollouts, 4 * EVAL_TASKS);
    const { metrics } = sampled;
    assert.equal(metrics.tasks, EVAL_TASKS);
    assert.ok(Math.abs(Number(metrics["pass@1"]) - Number(metrics.success)) < 1e-12);
    const estimates = ["pass@1", "pass@2", "pass@4"].map((name) => Number(metrics[name]));
    assert.deepEqual(
      estimates,
      estimates.toSorted((a, b) => a - b),
    );
    const folder = path.join(stack.stateFolder, "runs", report.run);
    assert.deepEqual(await readdir(folder), ["model", "state", "tokenizer"]);
    const [state] = await readdir(path.join(folder, "state"));
    const files = await readdir(path.join(folder, "state", String(state)));
    assert.ok(!files.includes("optimizer.safetensors"), files.join());
  });

  test("repeats itself, and takes the first tasks only where it is told so", async () => {
    const ask = () => evaluate("--model", `${finished.runId}@0`, "--tasks", "5", "--temperature", "0.7");
    const first = await ask();
    assert.deepEqual(
      first.evaluations.map(({ mode, rollouts }) => [mode, rollouts]),
      [["sampled", 5]],
    );
    assert.deepEqual((await ask()).evaluations, first.evaluations);
  });

  test("says what to do with a run's id in the place of the file", async () => {
    const { code, output } = await stack.hone("eval", finished.runId);
    assert.equal(code, 1);
    assert.match(output, new RegExp(`hone eval FILE --model ${finished.runId}`));
    const told = await stack.hone("evaluations", finished.runId);
    assert.match(told.output, /version {2}mode .*pass@1/);
  });
});
