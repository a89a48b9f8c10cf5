import assert from "node:assert/strict";
import { cp, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { inlineFiles, parseRunFile } from "@hone/config";
import { StreamName } from "@hone/messaging";
import { eventually, type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { findPython } from "../support/processes/find-python.ts";
import { type Ended, REPOSITORY, startStack, type TestStack } from "../support/stack.ts";

/* An agent's program cannot start because Python lacks a package: command line, status and page all show why. */

const EXAMPLE = path.join(REPOSITORY, "examples", "04-any-agent");
const PROGRAM = "import no_such_package\n";
/** Asks the model once, using only Python's standard library. */
const MENDED = `
import json, os, urllib.request

body = {"model": "policy", "messages": [{"role": "user", "content": "guess"}], "max_tokens": 2}
headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)).read()
`;
const REASON = /ModuleNotFoundError: No module named 'no_such_package'/;
const STEPS = 2;

const python = findPython("json", "loads");

describe("a run whose program cannot start", { timeout: 300_000, skip: python === undefined }, () => {
  let folder: TemporaryFolder;
  let stack: TestStack;
  let ended: Ended;
  let runId: string;

  before(async () => {
    folder = await temporaryFolder("hopeless");
    await cp(path.join(EXAMPLE, "numbers.jsonl"), path.join(folder.path, "numbers.jsonl"));
    await writeFile(path.join(folder.path, "play.py"), PROGRAM);
    const { warmStart: _, ...example } = parseRunFile(
      await readFile(path.join(EXAMPLE, "python.yaml"), "utf8"),
    );
    const run = await inlineFiles(
      {
        ...example,
        name: "hopeless",
        dataset: { train: { source: "jsonl", path: "numbers.jsonl" } },
        agent: { ...example.agent, config: { ...example.agent.config, command: [python ?? "", "play.py"] } },
        rollout: { ...example.rollout, tasksPerStep: 2, groupSize: 2 },
        trainer: { ...example.trainer, steps: STEPS, minibatches: 1 },
      },
      EXAMPLE,
    );
    await writeFile(path.join(folder.path, "run.json"), JSON.stringify(run));
    stack = await startStack({ env: { HONE_FILES: folder.path } });
    ended = await stack.hone("run", path.join(folder.path, "run.json"));
    runId = /run (hopeless-\d+)/.exec(ended.output)?.[1] ?? assert.fail(ended.output);
  });
  after(async () => {
    await stack?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  test("ends hone run with exit code 1 and the program's error", () => {
    assert.equal(ended.code, 1, ended.output);
    assert.match(ended.output, /all 4 rollouts of step 1 ended as agent_failed/);
    assert.match(ended.output, REASON);
    assert.match(ended.output, new RegExp(`hone resume ${runId}`));
  });

  test("is shown with its reason by hone status and the page", async () => {
    const status = await stack.hone("status");
    assert.match(status.output, /hopeless-\d+\s+failed/);
    assert.match(status.output, REASON);
    assert.match(status.output, new RegExp(`once the cause is fixed: hone resume ${runId}`));
    const run = await eventually("the page to show the end", async () => {
      const answer = (await (await stack.page(`/api/runs/${runId}`)).json()) as {
        phase: string;
        endReason: string;
        troubles: { outcomes: { count: number; reason: string }[] } | null;
      };
      return answer.phase === "failed" && answer.troubles !== null ? answer : undefined;
    });
    assert.match(run.endReason, REASON);
    assert.equal(run.troubles?.outcomes[0]?.count, 4);
    assert.match(run.troubles?.outcomes[0]?.reason ?? "", REASON);
  });

  test("trains nothing, and leaves no job and no episode", async () => {
    const [counted] = await stack.sql`select count(*)::int as rows from trainer.ledger`;
    assert.equal(counted?.rows, 0);
    await eventually("the streams to be empty", async () => {
      const streams = [StreamName.jobs, StreamName.episodes].map((name) =>
        stack.bus.manager.streams.info(name),
      );
      return (await Promise.all(streams)).every(({ state }) => state.messages === 0);
    });
  });

  test("continues with hone resume once the program is fixed, and completes", async () => {
    await writeFile(path.join(folder.path, "play.py"), MENDED);
    const resumed = await stack.hone("resume", runId);
    assert.equal(resumed.code, 0, resumed.output);
    await eventually(
      "the end",
      async () => {
        const { output } = await stack.hone("status", runId);
        assert.doesNotMatch(output, /failed/);
        return /completed/.test(output);
      },
      { deadlineMs: 120_000 },
    );
    const [counted] =
      await stack.sql`select count(*)::int as rows from trainer.ledger where run_id = ${runId}`;
    assert.equal(counted?.rows, STEPS * 4);
    await eventually("the page to show the repeated rollouts", async () => {
      const read = async (route: string) => (await stack.page(`/api/runs/${runId}${route}`)).json();
      const run = (await read("")) as { phase: string; endReason: string; endedAtMs: number | null };
      const { rollouts } = (await read("/rollouts")) as { rollouts: { outcome: string }[] };
      const isWell =
        rollouts.length === STEPS * 4 && rollouts.every(({ outcome }) => outcome !== "agent_failed");
      return isWell && run.phase === "completed" && run.endReason === "" && run.endedAtMs !== null;
    });
    const again = await stack.hone("resume", runId);
    assert.equal(again.code, 1);
    assert.match(again.output, /is over \(completed\), and only a paused or a failed run can be resumed/);
  });
});
