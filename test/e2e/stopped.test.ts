import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { runIdOf } from "@hone/core";
import { RunControl, readOrdered, request, StreamName, subjects } from "@hone/messaging";
import { ControlReplySchema, ControlRequestSchema, RunEventSchema, RunPhase } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { readOutcome } from "../kill/run-outcome.ts";
import { publishRequest, runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";
import { stopProcess } from "../support/stop-process.ts";

/*
 * SIGSTOP of each process in the middle of a step: it is not dead, so nobody starts another one; it does not answer, so
 * `hone status` and the page say that it is its turn; after SIGCONT the run ends as an undisturbed one ends.
 *
 * Between two of them the run is paused: it waits for the test, so that however slow the machine is there are steps left
 * for the process that is stopped last.
 */

/** More steps than parts are stopped, and short ones. */
const RUN = { steps: 16, tasksPerStep: 4, minibatches: 1, warmStartTasks: 60, evalTasks: 4 };
/** Within this time the status must name the service that has to act. */
const TOLD_WITHIN_MS = 15_000;
const DEADLINE_MS = 100_000;
const ANSWER_TIMEOUT_MS = 2_000;

interface ToldRun {
  readonly runId: string;
  readonly waitingFor: string;
  readonly waitingOwner: string;
  readonly waitingSinceMs: number | null;
  readonly phase: string;
}

/** Where the time since when may begin before the process was stopped: at the last sign of life. */
const SIGN_OF_LIFE_MS = 10_000;

describe("a run whose processes are stopped for a while", { timeout: 600_000 }, () => {
  let stack: TestStack;
  let undisturbed: Awaited<ReturnType<typeof trainedBy>>;
  let runId: string;
  let rolloutStep = 0;
  let completedSteps = 0;
  let phase: RunPhase | undefined;
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
      if (kind.case === "phaseChanged") {
        phase = kind.value.phase;
        if (phase === RunPhase.ROLLOUT) rolloutStep = kind.value.step;
      }
      if (kind.case === "stepCompleted") completedSteps = kind.value.step;
      if (kind.case === "ended") endedAs = kind.value.phase;
    }
  }

  /** Asks until there is an answer: who has just gone on may not have one at once. */
  async function ask(verb: "pause" | "resume"): Promise<void> {
    const { error } = await eventually(
      `an answer to ${verb}`,
      () =>
        request(
          stack.bus,
          subjects.runControl(verb, runId),
          ControlRequestSchema,
          create(ControlRequestSchema, { runId }),
          ControlReplySchema,
          { timeoutMs: ANSWER_TIMEOUT_MS },
        ),
      { deadlineMs: DEADLINE_MS },
    );
    assert.equal(error, "");
  }

  /** Waits for an event of the run, and no longer than it lasts. */
  async function untilEvent(what: string, isThere: () => boolean): Promise<void> {
    await eventually(what, () => isThere() || endedAs !== undefined, { deadlineMs: DEADLINE_MS });
    assert.equal(endedAs, undefined, `the run ended before ${what}`);
  }

  /** A step later than those that were disturbed before, while its rollouts are made. */
  async function inTheMiddleOfAStep(): Promise<void> {
    const earlier = rolloutStep;
    if (phase === RunPhase.PAUSED) await ask(RunControl.resume);
    await untilEvent("the next step", () => rolloutStep > earlier);
  }

  /** The step that was disturbed is done, and then the run rests. */
  async function goesOn(): Promise<void> {
    const disturbed = rolloutStep;
    await ask(RunControl.pause);
    await untilEvent("the disturbed step to be done", () => completedSteps >= disturbed);
    await untilEvent("the pause", () => phase === RunPhase.PAUSED);
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
        new RegExp(`^stopped-\\d+ .*waits for .*\\(${victim} must act\\)`, "m"),
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
      /^stopped-\d+ .*waits for the trainer, which does not answer .*trainer must act/m,
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
          return silent("database").test(output) && /\(database must act\)/.test(output) && output;
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
    await ask(RunControl.resume);
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
