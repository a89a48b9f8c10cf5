import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import type { RunConfig } from "@hone/config";
import { runIdOf } from "@hone/core";
import { BucketName, openBucket } from "@hone/messaging";
import { RunStateSchema } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { publishRequest, refusalOf, untilEnded } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/* Wrong run requests that are published by hand are answered with the key, the value and what is allowed, and leave nothing. */

const RUN = { name: "wrong", steps: 1, tasksPerStep: 2, minibatches: 1, warmStartTasks: 10, evalTasks: 2 };
const ANSWER_MS = 30_000;

describe("a wrong run request", () => {
  let stack: TestStack;
  let right: RunConfig;
  before(async () => {
    stack = await startStack();
    right = await lakeRun(RUN);
  });
  after(() => stack?.[Symbol.asyncDispose]());

  const cases: Array<{ what: string; text: () => string; key: string; value: unknown; allowed: RegExp }> = [
    {
      what: "an unknown key",
      text: () => JSON.stringify({ ...right, rollout: { ...right.rollout, grupSize: 4 } }),
      key: "rollout.grupSize",
      value: 4,
      allowed: /groupSize/,
    },
    {
      what: "an unknown agent",
      text: () => JSON.stringify({ ...right, agent: { ...right.agent, name: "frozen_lak" } }),
      key: "agent.name",
      value: "frozen_lak",
      allowed: /frozen_lake/,
    },
    {
      what: "a missing file",
      text: () => JSON.stringify({ ...right, agent: { name: "frozen_lake", configPath: "absent.yaml" } }),
      key: "agent.configPath",
      value: "absent.yaml",
      allowed: /file/,
    },
    {
      what: "an unknown environment",
      text: () =>
        JSON.stringify({
          ...right,
          dataset: { ...right.dataset, train: { ...right.dataset.train, environment: "lake" } },
        }),
      key: "dataset.train.environment",
      value: "lake",
      allowed: /frozen_lake/,
    },
    {
      what: "an unknown scripted policy",
      text: () => JSON.stringify({ ...right, warmStart: { ...right.warmStart, policy: "perfect" } }),
      key: "warmStart.policy",
      value: "perfect",
      allowed: /random_legal/,
    },
    {
      what: "text that is no run file",
      text: () => "name: [unclosed",
      key: "",
      value: undefined,
      allowed: /YAML/,
    },
  ];

  for (const { what, text, key, value, allowed } of cases) {
    test(`with ${what} is refused by its key`, async () => {
      const sequence = await publishRequest(stack.bus, text());
      const { problems } = await refusalOf(stack.bus, sequence, ANSWER_MS);
      const problem = problems.find((candidate) => candidate.key === key);
      assert.ok(problem, `no problem with "${key}" among ${JSON.stringify(problems)}`);
      assert.match(problem.allowed, allowed);
      assert.equal(problem.valueJson, value === undefined ? "" : JSON.stringify(value));
      assert.ok(problem.message.length > 0);
    });
  }

  test("ends at once the wait of untilEnded()", async () => {
    const text = JSON.stringify({ ...right, rollout: { ...right.rollout, grupSize: 4 } });
    const runId = runIdOf(RUN.name, await publishRequest(stack.bus, text));
    await assert.rejects(untilEnded(stack, runId, ANSWER_MS), /was refused: .*grupSize/);
  });

  test("leaves no run, no state and no folder", async () => {
    // What admission had prepared is removed after the refusal is published.
    await eventually("the run to be gone", async () => {
      const [counted] = await stack.sql`select count(*)::int as runs from trainer.runs`;
      return counted?.runs === 0;
    });
    const states = await openBucket(stack.bus, BucketName.runState, RunStateSchema);
    assert.deepEqual(await states.entries(), []);
    const { state } = await stack.bus.manager.streams.info("JOBS");
    assert.equal(state.messages, 0);
    const folders = await readdir(path.join(stack.stateFolder, "runs")).catch(
      (error: NodeJS.ErrnoException) => {
        assert.equal(error.code, "ENOENT");
        return [];
      },
    );
    assert.deepEqual(folders, []);
  });

  test("is unknown to hone status", async () => {
    const { code, output } = await stack.hone("status");
    assert.equal(code, 0, output);
    assert.match(output, /no run/i);
  });
});
