import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { RunPhase } from "@hone/proto-gen/run";
import { eventually, temporaryFolder } from "@hone/testing";
import { complaintsAbout } from "../kill/compare-outcomes.ts";
import { type RunOutcome, readOutcome } from "../kill/run-outcome.ts";
import { runToEnd } from "../support/follow.ts";
import { brokenPromises } from "../support/inspect/asynchronous-run.ts";
import { scrape } from "../support/inspect/scrape.ts";
import { assertRepeatable } from "../support/inspect/weights.ts";
import { childrenOf, commandOf } from "../support/processes/stop-process.ts";
import { startStack, type TestStack } from "../support/stack.ts";
import { saveTinyModel } from "../support/tiny-model.ts";
import { FlakyServers } from "./flaky-servers.ts";

/*
 * Infrastructure fails during rollouts: a tool's server, a judge's server, the sandbox and the process of the agents. What
 * failed must be repeated and counted, and the run must train the same as an undisturbed run.
 */

const STEPS = 2;
const ROWS = 4;
const GROUP_SIZE = 4;
const RUN_DEADLINE_MS = 400_000;
/** Deadlines of tools, whose expiry the model would see. They must not expire even on a very busy machine. */
const BUSY_MS = 120_000;
/** Each call of Python runs at most three times. */
const SANDBOX_KILLS = 2;

/** Calls the model, then a tool whose server may fail and, in some rows, Python; then calls the model again. */
const AGENT = `
import { randomUUID } from "node:crypto";
import { buildToolbox, defineAgent, defineTool, InfrastructureError, promptOfRow, toLangChainMessages, toolConfigShape } from "@hone/agents";
import { HumanMessage } from ${JSON.stringify("@langchain/core/messages")};
import { z } from ${JSON.stringify("zod")};

const lookup = defineTool<{ address: string }>({
  name: "lookup",
  description: "Looks something up",
  parameters: { type: "object" },
  open: ({ kwargs, seed }) => ({ address: kwargs.url + "/tool/" + seed + "/" + randomUUID() }),
  async call(_, { state, signal }) {
    try {
      const answer = await fetch(state.address, { signal });
      return ((await answer.json()) as { text: string }).text;
    } catch (cause) {
      throw new InfrastructureError("look it up", "its server does not answer", String(cause), { cause });
    }
  },
});

const call = (name: string, args: Record<string, unknown>) =>
  ({ id: name, type: "function", function: { name, arguments: args } }) as const;

const traveller = defineAgent({
  configSchema: z.strictObject(toolConfigShape),
  needsEnvironment: false,
  needsRow: true,
  buildGraph: (config, context) => buildToolbox(config, context),
  async run(toolbox, rollout) {
    const tools = rollout.openTools(toolbox);
    const prompt = toLangChainMessages(promptOfRow(rollout.task));
    const first = await rollout.model.invoke(prompt);
    const code = "import time\\ntime.sleep(0.2)\\nprint(6 * 7)";
    const calls = [call("lookup", {}), ...(rollout.task.row?.python === true ? [call("python", { code })] : [])];
    const replies = await tools.answerAll(calls);
    const told = new HumanMessage(replies.map(({ text }) => text).join("; "));
    await rollout.model.invoke([...prompt, first, told]);
    return {};
  },
});

export const tools = { lookup };
export const agents = { traveller };
`;

describe("a run whose infrastructure fails now and then", { timeout: 2 * RUN_DEADLINE_MS }, () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let servers: FlakyServers;
  let stack: TestStack;
  let undisturbed: RunOutcome;

  before(async () => {
    folder = await temporaryFolder("flaky");
    servers = await FlakyServers.start();
    const files = path.join(folder.path, "files");
    await mkdir(files);
    const rows = Array.from({ length: ROWS }, (_, index) => ({
      prompt: `Where is ${index}?`,
      python: index === 0,
      tools_kwargs: { lookup: { url: servers.url } },
    }));
    await writeFile(path.join(files, "rows.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    await writeFile(path.join(files, "traveller.ts"), AGENT);
    await saveTinyModel(path.join(folder.path, "model"));
    stack = await startStack({ env: { HONE_FILES: files, HONE_MODEL_FOLDERS: folder.path } });
    const { runId } = await runToEnd(stack, requestOf("calm"), { deadlineMs: RUN_DEADLINE_MS });
    undisturbed = await outcomeOf(stack, runId);
  });
  after(async () => {
    await stack?.[Symbol.asyncDispose]();
    await servers?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  const requestOf = (name: string) => ({
    name,
    seed: 11,
    model: { path: path.join(folder.path, "model") },
    dataset: { train: { source: "jsonl", path: "rows.jsonl" } },
    agent: {
      name: "traveller",
      modules: ["traveller.ts"],
      config: {
        tools: ["lookup", { name: "python", config: { timeMs: BUSY_MS } }],
        toolAttempts: 2,
        toolDeadlineMs: BUSY_MS,
      },
    },
    rollout: {
      tasksPerStep: ROWS,
      groupSize: GROUP_SIZE,
      maxTurns: 2,
      maxContextTokens: 256,
      maxAttempts: 3,
      deadlineMs: BUSY_MS,
      sampling: { temperature: 1, maxNewTokens: 6 },
    },
    judge: [{ kind: "http", url: `${servers.url}/judge` }],
    trainer: { steps: STEPS, optimizer: { kind: "adamw", learningRate: 0.001 } },
  });

  test("trains the same rollouts to the same weights, and counts what failed", async () => {
    servers.startFailing();
    const disturbing: Promise<unknown>[] = [];
    const { runId, steps } = await runToEnd(stack, requestOf("flaky"), {
      deadlineMs: RUN_DEADLINE_MS,
      onEvent: ({ kind }) => {
        if (kind.case !== "phaseChanged" || kind.value.phase !== RunPhase.ROLLOUT) return;
        if (kind.value.step === 1) disturbing.push(killSandboxes(stack));
        if (kind.value.step === 2) disturbing.push(stack.kill("agent-rollout"));
      },
    });
    await Promise.all(disturbing);
    assert.equal(disturbing.length, 2);
    const outcome = await outcomeOf(stack, runId);
    assert.deepEqual(complaintsAbout(outcome, undisturbed), []);
    assert.equal(outcome.rollouts.length, STEPS * ROWS * GROUP_SIZE);
    assert.ok(outcome.rollouts.every((rollout) => rollout.outcome === "completed"));

    assert.ok(servers.failures.tool > 0 && servers.failures.judge > 0, JSON.stringify(servers.failures));
    const [again] = await stack.sql<{ count: number }[]>`
      select sum(attempt - 1)::int as count from trainer.ledger where run_id = ${runId}`;
    const failed = steps.reduce((sum, { metrics }) => sum + (metrics["attempts/failed"] ?? 0), 0);
    assert.ok(failed > 0 && failed === again?.count, `${failed} of ${again?.count} attempts`);
    const retries = (await scrape(stack, "judge")).sum("hone_retries_total", { part: "judge" });
    assert.equal(retries, servers.failures.judge);
  });

  test("trains an asynchronous run whole, and its rollouts again to the same bytes", async () => {
    const before = { ...servers.failures };
    servers.startFailing();
    const request = requestOf("windy");
    const shape = { steps: 2 * STEPS, maxStaleness: 1 };
    const run = { ...request, trainer: { ...request.trainer, ...shape, keepRollouts: true } };
    const disturbing: Promise<unknown>[] = [];
    const { runId } = await runToEnd(stack, run, {
      deadlineMs: RUN_DEADLINE_MS,
      onEvent: ({ kind }) => {
        if (kind.case === "phaseChanged" && kind.value.phase === RunPhase.ROLLOUT && kind.value.step === 2)
          disturbing.push(stack.kill("agent-rollout"));
      },
    });
    await Promise.all(disturbing);
    assert.equal(disturbing.length, 1);
    assert.ok(servers.failures.tool > before.tool && servers.failures.judge > before.judge);
    assert.deepEqual(await brokenPromises(stack, runId, { ...shape, tasksPerStep: ROWS }), []);
    const outcome = await outcomeOf(stack, runId);
    const trained = outcome.rollouts.filter((rollout) => rollout.outcome !== "stale");
    assert.equal(trained.length, shape.steps * ROWS * GROUP_SIZE);
    assert.ok(trained.every((rollout) => rollout.outcome === "completed"));
    await assertRepeatable(stack, run, runId, RUN_DEADLINE_MS);
  });
});

/** Reads the outcome once the run's row shows its end, which is later than its last event. */
async function outcomeOf(stack: TestStack, runId: string): Promise<RunOutcome> {
  const isOver = async () => {
    const [row] = await stack.sql<
      { stage: string }[]
    >`select stage from trainer.runs where run_id = ${runId}`;
    return row !== undefined && row.stage !== "active";
  };
  await eventually(`the end of ${runId} in the database`, isOver);
  return readOutcome(stack, runId);
}

/** Kills two processes that run a rollout's code. */
async function killSandboxes(stack: TestStack): Promise<void> {
  const killed = new Set<number>();
  while (killed.size < SANDBOX_KILLS) {
    // The sandbox itself, and not the process that is still becoming one.
    const isSandbox = (command: string) => command.includes("--deny-net") && !command.includes("--allow-ffi");
    const isFresh = (pid: number) => !killed.has(pid) && isSandbox(commandOf(pid));
    const victim = await eventually(
      "a sandbox",
      () => childrenOf(stack.pidOf("agent-rollout")).find(isFresh),
      { deadlineMs: RUN_DEADLINE_MS },
    );
    process.kill(victim, "SIGKILL");
    killed.add(victim);
  }
}
