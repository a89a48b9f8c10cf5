import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { inlineFiles, parseRunFile, type RunConfig } from "@hone/config";
import { delay, runIdOf, type Slot, slotKey } from "@hone/core";
import {
  openRewardsOf,
  RewardGiver,
  request,
  StreamName,
  slotFromWire,
  slotToWire,
  subjectCount,
  subjects,
} from "@hone/messaging";
import { RewardReplySchema, RewardRequestSchema, type RewardResult } from "@hone/proto-gen/judge";
import { eventually } from "@hone/testing";
import { publishRequest, stageOf, untilEnded } from "../support/follow.ts";
import { brokenPromises } from "../support/inspect/asynchronous-run.ts";
import { leftoversOf, untilTidy } from "../support/inspect/leftovers.ts";
import { assertRepeatable, weightDigests } from "../support/inspect/weights.ts";
import { lakeRun } from "../support/lake-run.ts";
import { REPOSITORY, startStack, type TestStack } from "../support/stack.ts";

/* Runs whose rewards come after the rollouts have ended: from the bus, from the command line, and by the URL of a session. */

const DEADLINE_MS = 180_000;
const REWARD_DEADLINE_MS = 600_000;
const EXAMPLE = path.join(REPOSITORY, "examples", "04-any-agent");

/** The reward of a rollout, so that two runs get the same. */
const rewardOf = ({ step, task, index }: Slot) => ((step + task + 2 * index) % 3) / 2;

async function laterRun(name: string): Promise<RunConfig> {
  const shape = { steps: 2, tasksPerStep: 2, minibatches: 1, warmStartTasks: 16, evalTasks: 1 };
  const run = await lakeRun({ name, ...shape });
  const { judge: _, ...rest } = run;
  return {
    ...rest,
    judge: [
      { kind: "later", name: "people", weight: 1 },
      { kind: "environment", weight: 0.5 },
    ],
    rollout: { ...run.rollout, groupSize: 2, rewardDeadlineMs: REWARD_DEADLINE_MS },
  };
}

const publish = async ({ bus }: TestStack, run: RunConfig) =>
  runIdOf(run.name, await publishRequest(bus, JSON.stringify(run)));

/** The slots of a run's rollouts that wait for rewards; none while the bus does not answer. */
async function openSlots({ bus }: TestStack, runId: string): Promise<Slot[]> {
  const { rollouts } = await openRewardsOf(bus, runId).catch(() => ({ rollouts: [] }));
  return rollouts.map(({ finished }) => slotFromWire(finished?.slot));
}

async function give({ bus }: TestStack, runId: string, slot: Slot, value: number): Promise<RewardResult> {
  const reward = create(RewardRequestSchema, { runId, slot: slotToWire(slot), value });
  const reply = await request(
    bus,
    subjects.judgeReward(RewardGiver.client),
    RewardRequestSchema,
    reward,
    RewardReplySchema,
    { timeoutMs: 5_000 },
  );
  return reply.result;
}

/** Gives rewards to all rollouts that may get one, until the run has ended; one that fails is given again. */
async function giveAll(stack: TestStack, runId: string, mayGet: (slot: Slot) => boolean): Promise<void> {
  const ended = untilEnded(stack, runId, DEADLINE_MS).finally(() => {
    isOver = true;
  });
  let isOver = false;
  while (!isOver) {
    const slots = (await openSlots(stack, runId)).filter(mayGet);
    const giving = slots.map((slot) => give(stack, runId, slot, rewardOf(slot)).catch(() => undefined));
    await Promise.all(giving);
    await delay(50);
  }
  await ended;
}

/** How many keys of the bucket a run has, also such as were removed. */
async function numKeys({ bus }: TestStack, runId: string): Promise<number> {
  const { state } = await bus.manager.streams.info("KV_REWARDS", { subjects_filter: ">" });
  return Object.keys(state.subjects ?? {}).filter((subject) => subject.split(".")[3] === runId).length;
}

/** What a run trained, and the weights that it made. */
async function outcomeOf(stack: TestStack, runId: string) {
  const rollouts = await stack.sql`
    select slot, version, outcome, reward, advantage, sampled_tokens from trainer.ledger
    where run_id = ${runId} order by slot`;
  const evaluations = await stack.sql`
    select version, mode, episodes, metrics->>'reward/mean' as reward from trainer.evaluations
    where run_id = ${runId} order by version, mode`;
  return {
    rollouts: [...rollouts],
    evaluations: [...evaluations],
    weights: await weightDigests(stack, runId),
  };
}

describe("a run whose rewards come later", { timeout: 900_000 }, () => {
  let stack: TestStack;
  before(async () => {
    stack = await startStack({ env: { HONE_FILES: REPOSITORY } });
  });
  after(() => stack?.[Symbol.asyncDispose]());

  test("trains the same to the last bit though judge, agents, trainer and bus are killed while rewards are open", async () => {
    const calm = await publish(stack, await laterRun("calm"));
    await giveAll(stack, calm, () => true);
    const expected = await outcomeOf(stack, calm);
    assert.equal(expected.rollouts.filter(({ slot }) => /^train/.test(slot)).length, 8);

    const runId = await publish(stack, await laterRun("stormy"));
    let isCalm = false;
    const giving = giveAll(stack, runId, ({ split }) => isCalm || split === "eval");
    const waiting = async () =>
      (await openSlots(stack, runId)).filter(({ split, step }) => split === "train" && step === 1);
    const open = await eventually(
      "the first step to wait for rewards",
      async () => {
        const slots = await waiting();
        return slots.length === 4 ? slots : undefined;
      },
      { deadlineMs: DEADLINE_MS },
    );
    await eventually(
      "the status to say so",
      async () =>
        /4 wait for rewards, the oldest since 20\S+ \S+ UTC.*\(waiting for you\)/.test(
          (await stack.hone("status")).output,
        ),
      { deadlineMs: 30_000 },
    );
    for (const victim of ["judge", "agent-rollout"]) await stack.kill(victim);
    const [first, second] = open;
    assert.ok(first !== undefined && second !== undefined);
    const key = slotKey(first);
    const reward = async (...args: string[]) => stack.hone("reward", runId, ...args);
    await eventually(
      "a judge to take a reward",
      async () => (await reward(key, String(rewardOf(first)), "--reason", "fair")).code === 0,
    );
    await stack.kill("judge");
    await eventually("the same reward to be recognised", async () =>
      /had already been given/.test((await reward(`${runId}/${key}`, String(rewardOf(first)))).output),
    );
    const refused = await reward(key, "9");
    assert.deepEqual(
      [refused.code, /was given \S+ before, which stands/.test(refused.output)],
      [1, true],
      refused.output,
    );
    assert.match((await reward()).output, new RegExp(`${slotKey(second)}\\s+waits for people`));
    for (const victim of ["trainer", "nats-server"]) await stack.kill(victim);
    isCalm = true;
    await giving;
    assert.deepEqual(await outcomeOf(stack, runId), expected);
    const [run] = await stack.sql`select count(*)::int as count from trainer.ledger where run_id = ${runId}`;
    assert.equal(run?.count, expected.rollouts.length, "each rollout was trained once");
    await untilTidy(() => leftoversOf(stack), 60_000);
    await eventually("the rewards to be dropped", async () => (await numKeys(stack, runId)) === 0);
  });

  test("takes them by the URL of a session that has ended, also after its process was killed", async () => {
    const sessions: { url: string; key: string; openaiBaseUrl: string }[] = [];
    const server = createServer(async (incoming, response) => {
      let body = "";
      for await (const chunk of incoming) body += String(chunk);
      const { session, task } = JSON.parse(body);
      await fetch(`${session.openaiBaseUrl}/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${session.key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "policy", messages: task.prompt }),
      });
      sessions.push(session);
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const example = parseRunFile(await readFile(path.join(EXAMPLE, "shell.yaml"), "utf8"));
    const { warmStart: _, ...rest } = example;
    const run = await inlineFiles(
      {
        ...rest,
        name: "by-session",
        agent: {
          name: "endpoint",
          config: { endpoint: `http://127.0.0.1:${port}/play`, rewards: "session" },
        },
        rollout: { ...example.rollout, tasksPerStep: 1, groupSize: 2, rewardDeadlineMs: REWARD_DEADLINE_MS },
        judge: [{ kind: "later", weight: 1 }],
        trainer: { ...example.trainer, steps: 1, minibatches: 1 },
      },
      EXAMPLE,
    );
    const runId = await publish(stack, { ...run, dataset: { train: run.dataset.train } });
    await eventually("both rollouts to wait", async () => (await openSlots(stack, runId)).length === 2, {
      deadlineMs: DEADLINE_MS,
    });
    await stack.kill("agent-rollout");
    const { services } = JSON.parse(readFileSync(path.join(stack.stateFolder, "stack.json"), "utf8"));
    const address = `http://127.0.0.1:${services["agent-rollout"].httpPort}`;
    const post = async (session: (typeof sessions)[number], body: object, key = session.key) =>
      fetch(`${address}${new URL(session.url).pathname}/rewards`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const [one, other] = sessions;
    assert.ok(one !== undefined && other !== undefined);
    assert.equal((await post(one, { value: 1 }, other.key)).status, 401);
    assert.equal((await post(one, { value: 1, name: "later", reason: "sold" })).status, 200);
    assert.equal(
      ((await (await post(one, { value: 1 })).json()) as { isRepeated: boolean }).isRepeated,
      true,
    );
    assert.equal((await post(one, { value: 0 })).status, 409);
    assert.equal((await post(other, { value: 0 })).status, 200);
    await untilEnded(stack, runId, DEADLINE_MS);
    const { rollouts } = await outcomeOf(stack, runId);
    assert.deepEqual(rollouts.map(({ reward }) => reward).sort(), [0, 1]);
    server.close();
  });

  test("an asynchronous run trains other groups while rewards are open, and takes these when they come", async () => {
    const base = await laterRun("ahead");
    const shape = { steps: 4, maxStaleness: 2 };
    // Without evaluations, so that its replay waits for nobody.
    const run = {
      ...base,
      dataset: { train: base.dataset.train },
      trainer: { ...base.trainer, ...shape, keepRollouts: true },
    };
    const runId = await publish(stack, run);
    const isOfFirst = ({ split, step, task }: Slot) => split === "train" && step === 1 && task === 0;
    let isHeldBack = true;
    const giving = giveAll(stack, runId, (slot) => !(isHeldBack && isOfFirst(slot)));
    await eventually(
      "a step without the group whose rewards are open",
      async () => {
        const [row] = await stack.sql`select version from trainer.runs where run_id = ${runId}`;
        return row?.version >= 1 && (await openSlots(stack, runId)).filter(isOfFirst).length === 2;
      },
      { deadlineMs: DEADLINE_MS },
    );
    isHeldBack = false;
    await giving;
    assert.deepEqual(await brokenPromises(stack, runId, { ...shape, tasksPerStep: 2 }), []);
    const { rollouts } = await outcomeOf(stack, runId);
    const held = rollouts.filter(({ slot }) => /^train\.1\.0\./.test(slot));
    assert.equal(held.length, 2, "each was trained, or left out as too old, once");
    assert.ok(
      held.every(({ outcome, version }) => outcome === "stale" || version > 1),
      JSON.stringify(held),
    );
    await assertRepeatable(stack, run, runId, DEADLINE_MS);
  });

  test("leaves no rewards behind when it is cancelled while it waits", async () => {
    const runId = await publish(stack, await laterRun("cancelled"));
    await eventually("rollouts to wait", async () => (await openSlots(stack, runId)).length > 0, {
      deadlineMs: DEADLINE_MS,
    });
    assert.equal((await stack.hone("cancel", runId)).code, 0);
    await eventually("the end", async () => (await stageOf(stack, runId)) === "cancelled", {
      deadlineMs: 60_000,
    });
    await eventually("its episodes and rewards to go", async () => {
      const episodes = await subjectCount(stack.bus, StreamName.episodes, subjects.episodes(runId));
      return episodes === 0 && (await numKeys(stack, runId)) === 0;
    });
  });
});
