import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { inlineFiles, parseRunFile, type RunConfig } from "@hone/config";
import { parseSlotKey, Random, rolloutIdOf, runIdOf } from "@hone/core";
import { eventually } from "@hone/testing";
import { complaintsAbout } from "../kill/compare-outcomes.ts";
import { type RunOutcome, readOutcome } from "../kill/run-outcome.ts";
import { failureOf } from "../support/failure.ts";
import { publishRequest, untilEnded } from "../support/follow.ts";
import { serviceUrl } from "../support/inspect/scrape.ts";
import { findPython } from "../support/processes/find-python.ts";
import { newTally, playEpisodes, type Tally } from "../support/processes/swarm-clients.ts";
import { REPOSITORY, startStack, type TestStack } from "../support/stack.ts";

/*
 * Short runs of the example of clients elsewhere: twenty clients open 200 episodes. In the disturbed runs a quarter of the clients
 * vanish, die in the middle of a call or answer after their lease, and in one of them agent-rollout is killed too. Each of them
 * has to train exactly what the undisturbed run trained.
 */

const EXAMPLE = path.join(REPOSITORY, "examples", "09-swarm");
const STEPS = 4;
const TASKS_PER_STEP = 10;
const GROUP_SIZE = 5;
const ROLLOUTS = STEPS * TASKS_PER_STEP * GROUP_SIZE;
const CLIENTS = 20;
const UNRELIABLE_CLIENTS = 5;
const LEASE_MS = 1_500;
const RUN_DEADLINE_MS = 120_000;
const KEY = "a-key-of-the-operator";

const python = findPython("urllib", "request");
if (python === undefined) console.warn("SKIPPED: the client in Python is not run, as there is no python3");

async function smallRun(): Promise<RunConfig> {
  const example = parseRunFile(await readFile(path.join(EXAMPLE, "run.yaml"), "utf8"));
  const { agent, rollout, trainer } = example;
  const run: RunConfig = {
    ...example,
    agent: { ...agent, config: { ...agent.config, swarm: { leaseMs: LEASE_MS, freeReturns: 100 } } },
    // Only returns that are free can happen, so one that costs an attempt would end a rollout.
    rollout: { ...rollout, tasksPerStep: TASKS_PER_STEP, groupSize: GROUP_SIZE, maxAttempts: 1 },
    trainer: { ...trainer, steps: STEPS, minibatches: 1 },
  };
  return inlineFiles(run, EXAMPLE);
}

describe("two hundred episodes of twenty clients", { timeout: 500_000 }, () => {
  let stack: TestStack;
  let undisturbed: RunOutcome;

  before(async () => {
    stack = await startStack({ env: { HONE_FILES: REPOSITORY, HONE_SWARM_KEY: KEY } });
    undisturbed = (await play(0)).outcome;
  });
  after(() => stack?.[Symbol.asyncDispose]());

  /** Does the run with so many unreliable clients. @param during is called while they play. */
  async function play(
    unreliable: number,
    during: (tally: Tally) => Promise<void> = async () => undefined,
  ): Promise<{ readonly runId: string; readonly outcome: RunOutcome; readonly tally: Tally }> {
    const run = await smallRun();
    const runId = runIdOf(run.name, await publishRequest(stack.bus, JSON.stringify(run)));
    const over = new AbortController();
    const tally = newTally();
    const clients = Array.from({ length: CLIENTS }, (_, index) =>
      playEpisodes({
        urlOf: () => serviceUrl(stack, "agent-rollout"),
        key: KEY,
        runId,
        random: new Random(index),
        isReliable: index >= unreliable,
        leaseMs: LEASE_MS,
        tally,
        signal: over.signal,
      }),
    );
    try {
      await Promise.all([untilEnded(stack, runId, RUN_DEADLINE_MS), during(tally)]);
      return { runId, outcome: await readOutcome(stack, runId), tally };
    } catch (error) {
      throw failureOf(error, await stack.describe());
    } finally {
      over.abort();
      await Promise.all(clients);
    }
  }

  test("are trained once each", () => {
    const { rollouts, stage } = undisturbed;
    assert.equal(stage, "completed");
    assert.equal(rollouts.length, ROLLOUTS);
    assert.equal(new Set(rollouts.map(({ slot }) => slot)).size, ROLLOUTS);
    assert.ok(rollouts.every(({ outcome }) => outcome === "completed"));
    assert.ok(
      rollouts.some(({ reward }) => reward === 1),
      "some answers are right",
    );
    assert.ok(
      rollouts.some(({ reward }) => reward === 0),
      "some answers are wrong",
    );
  });

  test("train the same where the clients of the example play them, in TypeScript and in Python", async () => {
    const run = await smallRun();
    const runId = runIdOf(run.name, await publishRequest(stack.bus, JSON.stringify(run)));
    await eventually("the run to be known", async () => (await stack.hone("status")).output.includes(runId));
    const env = {
      ...process.env,
      HONE_SWARM_URL: serviceUrl(stack, "agent-rollout"),
      HONE_SWARM_KEY: KEY,
      HONE_SWARM_RUN: runId,
    };
    const clients = [
      [process.execPath, "client.ts"],
      ...(python === undefined ? [] : [[python, "client.py"]]),
    ].map(([program = "", file = ""]) =>
      spawn(program, [path.join(EXAMPLE, file)], { env, stdio: ["ignore", "inherit", "inherit"] }),
    );
    const ends = clients.map((client) => once(client, "close"));
    try {
      await untilEnded(stack, runId, RUN_DEADLINE_MS);
      assert.deepEqual(complaintsAbout(await readOutcome(stack, runId), undisturbed), []);
      for (const end of await Promise.all(ends)) assert.deepEqual(end, [0, null]);
    } finally {
      for (const client of clients) client.kill("SIGKILL");
    }
  });

  test("of which a quarter vanish, die or answer late train the same, and nothing counts twice", async () => {
    const { runId, outcome, tally } = await play(UNRELIABLE_CLIENTS);
    assert.deepEqual(complaintsAbout(outcome, undisturbed), []);
    assert.ok(tally.vanished > 0 && tally.died > 0 && tally.late > 0, JSON.stringify(tally));
    assert.equal(tally.lateTaken, 0);
    // Each report that was answered with 200 is one trained rollout, and each trained rollout is one of those.
    assert.deepEqual(tally.stored.toSorted(), trainedIn(runId, outcome));
    assert.equal(tally.reward, rewardOf(outcome));
  });

  test("train the same where agent-rollout is killed in the middle as well", async () => {
    const { runId, outcome, tally } = await play(UNRELIABLE_CLIENTS, async ({ stored }) => {
      await eventually("some episodes to be over", () => stored.length > ROLLOUTS / 3, {
        deadlineMs: RUN_DEADLINE_MS,
      });
      await stack.kill("agent-rollout");
    });
    assert.deepEqual(complaintsAbout(outcome, undisturbed), []);
    assert.equal(tally.lateTaken, 0);
    assert.equal(new Set(tally.stored).size, tally.stored.length, "no rollout was acknowledged twice");
    const answered = new Set([...tally.stored, ...tally.unanswered]);
    assert.deepEqual(
      trainedIn(runId, outcome).filter((rollout) => !answered.has(rollout)),
      [],
      "what was trained was reported",
    );
  });
});

function trainedIn(runId: string, { rollouts }: RunOutcome): string[] {
  return rollouts.map(({ slot }) => rolloutIdOf(runId, parseSlotKey(slot))).sort();
}

function rewardOf({ rollouts }: RunOutcome): number {
  return rollouts.reduce((sum, { reward }) => sum + reward, 0);
}
