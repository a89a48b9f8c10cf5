import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { type FinishedRun, runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/* Evaluates the policy of a trained run with the command line, on the services that trained it. */

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
    stack = await startStack({
      env: { HONE_ENDPOINT_KEY_TEST: "key of the test", HONE_ENDPOINT_KEY_TEST_HOSTS: "127.0.0.1" },
    });
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

  test("gives the same figures as the run's own evaluation, and trains nothing", async () => {
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

  test("gives the same figures again, and plays only the first tasks with --tasks", async () => {
    const ask = () => evaluate("--model", `${finished.runId}@0`, "--tasks", "5", "--temperature", "0.7");
    const first = await ask();
    assert.deepEqual(
      first.evaluations.map(({ mode, rollouts }) => [mode, rollouts]),
      [["sampled", 5]],
    );
    assert.deepEqual((await ask()).evaluations, first.evaluations);
  });

  test("evaluates the model of an endpoint with its key", async () => {
    const keys = new Set<string | undefined>();
    const server = createServer((request, response) => {
      keys.add(request.headers.authorization);
      request.resume().on("end", () => {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ choices: [{ message: { content: "Right" }, finish_reason: "stop" }] }));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const outside = ["--endpoint", `http://127.0.0.1:${port}/v1`, "--model", "right", "--tasks", "3"];
      const report = await evaluate(...outside, "--samples", "2", "--api-key-env", "HONE_ENDPOINT_KEY_TEST");
      assert.equal(report.model, `right at http://127.0.0.1:${port}/v1`);
      const [sampled] = report.evaluations;
      assert.deepEqual([sampled?.rollouts, sampled?.metrics.tasks, sampled?.metrics.tokens], [6, 3, 0]);
      assert.equal(sampled?.metrics["outcome/infra_failed"], 0);
      assert.deepEqual([...keys], ["Bearer key of the test"]);
      const refused = await stack.hone("eval", file, ...outside, "--api-key-env", "HOME");
      assert.equal(refused.code, 1);
      assert.match(refused.output, /trainer\.eval\.endpoint\.keyVariable.*not set for agent-rollout/);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  test("says what to do if a run's id is given instead of a file", async () => {
    const { code, output } = await stack.hone("eval", finished.runId);
    assert.equal(code, 1);
    assert.match(output, new RegExp(`hone eval FILE --model ${finished.runId}`));
    const evaluations = await stack.hone("evaluations", finished.runId);
    assert.match(evaluations.output, /version {2}mode .*pass@1/);
  });
});
