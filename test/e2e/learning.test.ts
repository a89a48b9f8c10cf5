import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { eventually } from "@hone/testing";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/* Runs a short run on the lake with the command line: the reward rises, and the output shows it. */

const RUN = {
  name: "learns",
  steps: 26,
  tasksPerStep: 32,
  minibatches: 8,
  warmStartTasks: 1000,
  evalTasks: 50,
};
/** Success rises from about 0.22 to about 0.55 in this many steps, always with the same seed. */
const LEAST_RISE = 0.15;
/** Largest difference between a token's log-probability in sampling and in the training graph. */
const MOST_MISMATCH = 1e-4;

interface StepRow {
  readonly version: number;
  readonly metrics: Readonly<Record<string, number>>;
}

describe("a short run on the lake", () => {
  let stack: TestStack;
  let output = "";
  let steps: StepRow[] = [];

  before(async () => {
    stack = await startStack();
    const file = path.join(stack.stateFolder, "learns.json");
    await writeFile(file, JSON.stringify(await lakeRun(RUN)));
    const run = await stack.hone("run", file);
    assert.equal(run.code, 0, `${run.output}\n${await stack.describe()}`);
    output = run.output;
    steps = await stack.sql<
      StepRow[]
    >`select version, metrics from trainer.steps where version > 0 order by version`;
  });
  after(() => stack?.[Symbol.asyncDispose]());

  test("raises the reward", () => {
    const mean = (rows: readonly StepRow[]) =>
      rows.reduce((sum, { metrics }) => sum + (metrics["reward/mean"] ?? Number.NaN), 0) / rows.length;
    assert.equal(steps.length, RUN.steps);
    const [first, last] = [mean(steps.slice(0, 5)), mean(steps.slice(-5))];
    assert.ok(last - first >= LEAST_RISE, `mean reward went from ${first} to ${last}`);
  });

  test("trains the tokens that were sampled, and reports a small mismatch at each step", () => {
    for (const { version, metrics } of steps) {
      const mismatch = metrics["mismatch/max"];
      assert.ok(mismatch !== undefined && mismatch < MOST_MISMATCH, `step ${version}: ${mismatch}`);
    }
  });

  test("prints its steps, held-out success before and after, a curve and the folder of the checkpoint", () => {
    assert.match(output, /step\s+1\/26 .*success/);
    assert.match(output, /version 0: held-out success/);
    assert.match(output, /version 26: held-out success/);
    assert.match(output, /checkpoint/);
    assert.ok(!output.includes("\u001b["), "plain lines where there is no terminal");
  });

  test("writes a checkpoint in the layout of Hugging Face", async () => {
    const folder = path.join(stack.stateFolder, "runs", "learns-1", "checkpoints", "step-26");
    const config = JSON.parse(await readFile(path.join(folder, "config.json"), "utf8")) as Record<
      string,
      unknown
    >;
    assert.deepEqual(config.architectures, ["Qwen3ForCausalLM"]);
    for (const file of [
      "model.safetensors",
      "tokenizer.json",
      "tokenizer_config.json",
      "chat_template.jinja",
    ]) {
      assert.ok((await readFile(path.join(folder, file))).length > 0, file);
    }
  });

  test("shows each rollout on the page, with one trace from the job to the gradient", async () => {
    const rollout = `/api/runs/learns-1/rollouts/train.26.0.0`;
    const spans = await eventually(
      "the whole trace of a rollout",
      async () => {
        const answer = await stack.page(`${rollout}/trace`);
        if (!answer.ok) return false;
        const text = await answer.text();
        const names = ["rollout", "invoke_agent", "chat", "judge", "train"];
        return names.every((name) => text.includes(`"${name}`)) && text;
      },
      { deadlineMs: 30_000 },
    );
    assert.match(spans, /agent-rollout/);
    const view = (await (await stack.page(rollout)).json()) as Record<string, unknown>;
    assert.match(JSON.stringify(view), /"advantage"/);
    assert.match(JSON.stringify(view), /<answer>/);
  });
});
