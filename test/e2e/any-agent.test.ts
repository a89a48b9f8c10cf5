import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { inlineFiles, parseRunFile, type RunConfig } from "@hone/config";
import type { ScoredEpisode } from "@hone/proto-gen/rollout";
import { runToEnd } from "../support/follow.ts";
import { scoredEpisodes } from "../support/inspect/scored-episodes.ts";
import { findPython } from "../support/processes/find-python.ts";
import { REPOSITORY, startStack, type TestStack } from "../support/stack.ts";

/*
 * Short runs of the example of agents in any language. A Python program, a shell script and a TypeScript program play the same
 * game, each with another client, and must leave the same record.
 */

const EXAMPLE = path.join(REPOSITORY, "examples", "04-any-agent");
const STEPS = 2;
const TASKS_PER_STEP = 3;
const GROUP_SIZE = 2;
const RUN_DEADLINE_MS = 180_000;

const python = findPython("openai", "OpenAI");
if (python === undefined) {
  console.warn(
    "SKIPPED: the agent in Python is not run, as no Python has the package openai; run `pip install openai`, or set HONE_PYTHON to one that has it",
  );
}

type Language = "python" | "shell" | "typescript";

async function exampleRun(language: Language): Promise<RunConfig> {
  return parseRunFile(await readFile(path.join(EXAMPLE, `${language}.yaml`), "utf8"));
}

async function smallRun(language: Language): Promise<RunConfig> {
  const example = await exampleRun(language);
  const { warmStart, rollout, trainer } = example;
  assert.ok(warmStart !== undefined);
  return inlineFiles(
    {
      ...example,
      warmStart: { ...warmStart, epochs: 1 },
      rollout: { ...rollout, tasksPerStep: TASKS_PER_STEP, groupSize: GROUP_SIZE },
      trainer: { ...trainer, steps: STEPS, minibatches: 1 },
    },
    EXAMPLE,
  );
}

/** The parts of an episode that must not depend on the program that played it. */
function recordOf({ episode, reward }: ScoredEpisode) {
  const samples = (episode?.samples ?? []).map(({ tokenIds, lossMask, logprobs, versions }) => ({
    tokenIds: [...tokenIds],
    lossMask: [...lossMask],
    logprobs: [...logprobs],
    versions: versions.map(({ version, tokenCount }) => [version, tokenCount]),
  }));
  const turns = (episode?.turns ?? []).map(({ promptText, responseText, sampledBegin, sampledEnd }) => ({
    promptText,
    responseText,
    sampledBegin,
    sampledEnd,
  }));
  const { step, task, index } = episode?.slot ?? {};
  return { slot: [step, task, index].join("/"), outcome: episode?.outcome, reward, samples, turns };
}

describe("examples/04-any-agent", { timeout: 600_000 }, () => {
  let stack: TestStack;
  const played = new Map<Language, ScoredEpisode[]>();

  before(async () => {
    const searched = [...(python?.includes("/") === true ? [path.dirname(python)] : []), process.env.PATH];
    stack = await startStack({ env: { HONE_FILES: REPOSITORY, PATH: searched.join(path.delimiter) } });
    for (const language of ["python", "shell", "typescript"] as const) {
      if (language === "python" && python === undefined) continue;
      const run = await smallRun(language);
      const count = STEPS * TASKS_PER_STEP * GROUP_SIZE;
      const episodes = scoredEpisodes(stack.bus, { run: run.name, count, deadlineMs: RUN_DEADLINE_MS });
      episodes.catch(() => undefined); // if the run fails, runToEnd() reports it
      await runToEnd(stack, run, { deadlineMs: RUN_DEADLINE_MS });
      played.set(language, await episodes);
    }
  });
  after(() => stack?.[Symbol.asyncDispose]());

  const recordsOf = (language: Language) =>
    (played.get(language) ?? []).map(recordOf).sort((a, b) => a.slot.localeCompare(b.slot));

  test("the run files differ only in name, agent and steps", async () => {
    const shared = async (language: Language) => {
      const { name, agent, trainer, ...run } = await exampleRun(language);
      return { ...run, trainer: { ...trainer, steps: 0 } };
    };
    assert.deepEqual(await shared("shell"), await shared("python"));
    assert.deepEqual(await shared("typescript"), await shared("python"));
  });

  test("every game is completed in one sample, and each call continues the one before", () => {
    for (const [language, episodes] of played) {
      for (const { episode } of episodes) {
        const { outcome, reason = "", turns = [], samples = [], metrics = {} } = episode ?? {};
        assert.equal(reason, "", `${language}: ${reason}`);
        assert.equal(outcome, episodes[0]?.episode?.outcome);
        assert.equal(samples.length, 1);
        assert.equal(metrics.session_calls, turns.length);
        const drift = Object.entries(metrics).filter(([name, value]) => /^drift_/.test(name) && value > 0);
        assert.deepEqual(drift, []);
      }
      const turnCounts = episodes.map(({ episode }) => episode?.turns.length ?? 0);
      assert.ok(Math.max(...turnCounts) > 1, `${language}: ${turnCounts}`);
    }
  });

  test("a shell script with curl and a TypeScript program with Anthropic's client leave the same record", () => {
    const records = recordsOf("shell");
    assert.equal(records.length, STEPS * TASKS_PER_STEP * GROUP_SIZE);
    assert.deepEqual(recordsOf("typescript"), records);
  });

  test("a Python program with OpenAI's client leaves the same record", { skip: python === undefined }, () => {
    assert.deepEqual(recordsOf("python"), recordsOf("shell"));
  });
});
