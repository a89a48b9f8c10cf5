import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { runIdOf } from "@hone/core";
import { readOrdered, StreamName, subjects } from "@hone/messaging";
import { RunEventSchema, RunPhase } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { readOutcome } from "../kill/run-outcome.ts";
import { publishRequest, runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";
import { stopProcess } from "../support/stop-process.ts";

/*
 * SIGSTOP of each process in the middle of a step: it is not dead, so nobody starts another one; it does not answer, so
 * `hone status` and the page say that it is its turn; after SIGCONT the run ends as an undisturbed one ends.
 */

/** More steps than parts are stopped, and short ones. */
const RUN = { steps: 16, tasksPerStep: 4, minibatches: 1, warmStartTasks: 60, evalTasks: 4 };
/** In this time it must be told whose turn it is. */
const TOLD_WITHIN_MS = 15_000;
const DEADLINE_MS = 100_000;

interface ToldRun {
  readonly runId: string;
  readonly waitingFor: string;
  readonly waitingOwner: string;
  readonly waitingSinceMs: number | null;
  readonly phase: string;
}

/** Where the time since when may begin before the process was stopped: at the last sign of life. */
const SIGN_OF_LIFE_MS = 10_000;

describe("a run whose processes are stopped for a while", { timeout: 300_000 }, () => {
  let stack: TestStack;
  let undisturbed: Awaited<ReturnType<typeof trainedBy>>;
  let runId: string;
  let rolloutStep = 0;
  let completedSteps = 0;
  let endedAs: RunPhase | undefined;
  const following = new AbortController();

  async function trainedBy(id: string) {
    const { rollouts, chain, state } = await readOutcome(stack, id);
    return { rollouts, chain, state };
  }

  before(async () => {
    stack = await startStack();
    const run = await runToEnd(stack, await lakeRun({ name: "undisturbed", ...RUN }), {
      deadlineMs: DEADLINE_MS,
    });
    undisturbed = await trainedBy(run.runId);
    const request = JSON.stringify(await lakeRun({ name: "stopped", ...RUN }));
    runId = runIdOf("stopped", await publishRequest(stack.bus, request));
    void follow();
  });
  after(async () => {
    following.abort();
    await stack?.[Symbol.asyncDispose]();
  });

  async function follow(): Promise<void> {
    const events = readOrdered(stack.bus, RunEventSchema, {
      stream: StreamName.events,
      filter: subjects.event(runId, "*"),
      signal: following.signal,
    });
    for await (const { message } of events) {
      const { kind } = message;
      if (kind.case === "phaseChanged" && kind.value.phase === RunPhase.ROLLOUT)
        rolloutStep = kind.value.step;
      if (kind.case === "stepCompleted") completedSteps = kind.value.step;
      if (kind.case === "ended") endedAs = kind.value.phase;
    }
  }

  /** A step later than those that were disturbed before, while its rollouts are made. */
  async function inTheMiddleOfAStep(): Promise<void> {
    const earlier = rolloutStep;
    await eventually("the next step", () => rolloutStep > earlier, { deadlineMs: DEADLINE_MS });
    assert.equal(endedAs, undefined, "the run is over too early");
  }

  async function goesOn(): Promise<void> {
    const before = completedSteps;
    await eventually("the next step to be done", () => completedSteps > before, { deadlineMs: DEADLINE_MS });
  }

  const status = async () => (await stack.hone("status")).output;
  const lineOf = (output: string, name: string) =>
    output.split("\n").find((line) => line.startsWith(name)) ?? "";

  async function api(route: string): Promise<{ status: number; body: unknown }> {
    const answer = await stack.page(`/api${route}`, AbortSignal.timeout(8_000));
    return { status: answer.status, body: await answer.json() };
  }

  async function toldByPage(): Promise<ToldRun | undefined> {
    const { runs } = (await api("/runs")).body as { runs: ToldRun[] };
    return runs.find((run) => run.runId === runId);
  }

  /** Both the command line and the page name the part in time. */
  async function bothName(
    owner: string,
    stoppedMs: number,
    partLine: RegExp,
    runLine: RegExp,
  ): Promise<void> {
    const deadlineMs = TOLD_WITHIN_MS - (Date.now() - stoppedMs);
    let shown = "";
    let told: ToldRun | undefined;
    try {
      await Promise.all([
        eventually(
          "hone status to name it",
          async () => {
            shown = await status();
            return partLine.test(shown) && runLine.test(shown);
          },
          { deadlineMs },
        ),
        eventually(
          "the page to name it",
          async () => {
            told = await toldByPage();
            return told?.waitingOwner === owner;
          },
          { deadlineMs },
        ),
      ]);
    } catch (error) {
      throw new Error(`${shown}\n${JSON.stringify(told)}`, { cause: error });
    }
    const sinceMs = told?.waitingSinceMs ?? 0;
    assert.ok(Math.abs(sinceMs - stoppedMs) < SIGN_OF_LIFE_MS, `since ${sinceMs}, stopped at ${stoppedMs}`);
  }

  const silent = (name: string) => new RegExp(`^${name} +does not answer since \\d+ s`, "m");

  for (const victim of ["judge", "dataset", "inference-gateway", "agent-rollout"]) {
    test(`wait for ${victim}, and both command line and page say so`, async () => {
      await inTheMiddleOfAStep();
      const pid = stack.pidOf(victim);
      const stoppedMs = Date.now();
      using stopped = stopProcess(stack, victim);
      await bothName(
        victim,
        stoppedMs,
        silent(victim),
        new RegExp(`^stopped-\\d+ .*waits for .*\\(turn of ${victim}\\)`, "m"),
      );
      stopped.goOn();
      await goesOn();
      assert.equal(stack.pidOf(victim), pid, "another process was started");
    });
  }

  test("wait for the trainer, and both command line and page say so", async () => {
    await inTheMiddleOfAStep();
    const pid = stack.pidOf("trainer");
    const stoppedMs = Date.now();
    using stopped = stopProcess(stack, "trainer");
    await bothName(
      "trainer",
      stoppedMs,
      silent("trainer"),
      /^stopped-\d+ .*waits for the trainer, which does not answer .*turn of trainer/m,
    );
    stopped.goOn();
    await goesOn();
    assert.equal(stack.pidOf("trainer"), pid, "another process was started");
  });

  test("wait for the bus, and both command line and page say so", async () => {
    await inTheMiddleOfAStep();
    const stoppedMs = Date.now();
    using stopped = stopProcess(stack, "nats-server");
    await bothName("bus", stoppedMs, silent("bus"), /^runs are not known: they wait for the bus/m);
    stopped.goOn();
    await goesOn();
  });

  test("wait for the database, and both command line and page say so", async () => {
    await inTheMiddleOfAStep();
    const stoppedMs = Date.now();
    using stopped = stopProcess(stack, "postgres");
    const deadlineMs = TOLD_WITHIN_MS;
    const [shown] = await Promise.all([
      eventually(
        "hone status to name it",
        async () => {
          const output = await status();
          return silent("database").test(output) && /\(turn of database\)/.test(output) && output;
        },
        { deadlineMs },
      ),
      eventually(
        "the page to name it",
        async () => {
          const { database } = (await api("/health")).body as { database: { silentSinceMs: number | null } };
          return database.silentSinceMs !== null;
        },
        { deadlineMs },
      ),
      // The page's runs lie in that database: it says that it cannot read them, and why, instead of hanging.
      eventually(
        "the page to say what it lacks",
        async () => {
          const { status: code, body } = await api("/runs");
          return code === 503 && /database/.test(JSON.stringify(body));
        },
        { deadlineMs },
      ),
    ]);
    assert.match(lineOf(shown, "stopped-"), /waits for the database/);
    assert.ok(Date.now() - stoppedMs < TOLD_WITHIN_MS);
    stopped.goOn();
    await goesOn();
  });

  test("end with the rollouts and the weights of an undisturbed one", async () => {
    await eventually("the end of the run", () => endedAs, { deadlineMs: DEADLINE_MS });
    assert.equal(endedAs, RunPhase.COMPLETED);
    assert.deepEqual(await trainedBy(runId), undisturbed);
  });

  test("do not wait for the tracer, which is told of, and shows them afterwards", async () => {
    const stopped = stopProcess(stack, "tracer");
    try {
      const run = await runToEnd(stack, await lakeRun({ name: "untold", ...RUN }), {
        deadlineMs: DEADLINE_MS,
      });
      assert.deepEqual(await trainedBy(run.runId), undisturbed);
      await eventually(
        "the status to tell of the tracer",
        async () => silent("tracer").test(await status()),
        {
          deadlineMs: TOLD_WITHIN_MS,
        },
      );
      stopped.goOn();
      await eventually("the page to show the run", async () => {
        const { status: code, body } = await api(`/runs/${run.runId}`);
        return code === 200 && (body as ToldRun).phase === "completed";
      });
    } finally {
      stopped.goOn();
    }
  });
});
