import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { inlineFiles, parseRunFile, type RunConfig } from "@hone/config";
import { runToEnd } from "../support/follow.ts";
import { scoredEpisodes } from "../support/inspect/scored-episodes.ts";
import { findPython } from "../support/processes/find-python.ts";
import { REPOSITORY, startStack, type TestStack } from "../support/stack.ts";

/* Short runs of the examples of agents of Python frameworks: each rollout must be one sample, without drift. */

const EXAMPLE = path.join(REPOSITORY, "examples", "10-frameworks");
const TASKS_PER_STEP = 3;
const GROUP_SIZE = 2;
const RUN_DEADLINE_MS = 180_000;

/** What must be imported for an agent, and what installs it. */
const FRAMEWORKS = [
  { name: "langgraph", from: "langchain_openai", what: "ChatOpenAI", packages: "langgraph langchain-openai" },
  { name: "openai_agents", from: "agents", what: "Runner", packages: "openai-agents" },
  { name: "agentscope", from: "agentscope.agent", what: "Agent", packages: "agentscope" },
] as const;

async function exampleRun(name: string): Promise<RunConfig> {
  return parseRunFile(await readFile(path.join(EXAMPLE, `${name}.yaml`), "utf8"));
}

async function smallRun(name: string): Promise<RunConfig> {
  const { warmStart, rollout, trainer, ...run } = await exampleRun(name);
  assert.ok(warmStart !== undefined);
  return inlineFiles(
    {
      ...run,
      warmStart: { ...warmStart, epochs: 1 },
      rollout: { ...rollout, tasksPerStep: TASKS_PER_STEP, groupSize: GROUP_SIZE },
      trainer: { ...trainer, steps: 1 },
    },
    REPOSITORY,
  );
}

describe("examples/10-frameworks", { timeout: 600_000 }, () => {
  let stack: TestStack;
  const pythons = new Map(FRAMEWORKS.map(({ name, from, what }) => [name, findPython(from, what)]));

  before(async () => {
    const found = [...pythons.values()].filter((python) => python?.includes("/") === true);
    const searched = [...new Set(found.map((python) => path.dirname(python ?? ""))), process.env.PATH];
    stack = await startStack({ env: { HONE_FILES: REPOSITORY, PATH: searched.join(path.delimiter) } });
  });
  after(() => stack?.[Symbol.asyncDispose]());

  test("the run files differ only in name and agent", async () => {
    const shared = async (each: string) => {
      const { name, agent, ...run } = await exampleRun(each);
      return run;
    };
    for (const { name } of FRAMEWORKS) assert.deepEqual(await shared(name), await shared("langgraph"));
  });

  for (const { name, packages } of FRAMEWORKS) {
    const skip =
      pythons.get(name) === undefined
        ? `no Python has it: run \`pip install ${packages}\`, or set HONE_PYTHON to one that has it`
        : false;
    if (skip !== false) console.warn(`SKIPPED: ${name} is not run, as ${skip}`);
    test(`${name} plays its rollouts with calls of its tool, each in one sample`, { skip }, async () => {
      const run = await smallRun(name);
      const count = TASKS_PER_STEP * GROUP_SIZE;
      const scored = scoredEpisodes(stack.bus, { run: run.name, count, deadlineMs: RUN_DEADLINE_MS });
      scored.catch(() => undefined); // if the run fails, runToEnd() reports it
      await runToEnd(stack, run, { deadlineMs: RUN_DEADLINE_MS });
      const episodes = await scored;
      assert.equal(episodes.length, count);
      for (const { episode } of episodes) {
        const { reason, turns = [], samples = [], metrics = {} } = episode ?? {};
        assert.equal(reason, "");
        assert.equal(samples.length, 1);
        assert.equal(metrics.session_calls, turns.length);
        const drift = Object.entries(metrics).filter(([key, value]) => /^drift_/.test(key) && value > 0);
        assert.deepEqual(drift, []);
      }
      const turnCounts = episodes.map(({ episode }) => episode?.turns.length ?? 0);
      assert.ok(Math.max(...turnCounts) > 1, `${turnCounts}`);
    });
  }
});
