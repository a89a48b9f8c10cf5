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
import { stopProcess } from "../support/processes/stop-process.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/*
 * Each process is stopped with SIGSTOP in the middle of a step. It is not dead, so it is not restarted; it does not answer, so
 * `hone status` and the page name it as the one that must act; after SIGCONT the run ends as an undisturbed run does.
 *
 * The run is paused between two stops, so that even on a slow machine there are steps left for the process that is stopped
 * last.
 */

/** More steps than processes that are stopped, and short ones. */
const RUN = { steps: 16, tasksPerStep: 4, minibatches: 1, warmStartTasks: 60, evalTasks: 4 };
/** Within this time the status must name the service that has to act. */
const TOLD_WITHIN_MS = 15_000;
const DEADLINE_MS = 100_000;
const ANSWER_TIMEOUT_MS = 2_000;

interface ShownRun {
  readonly runId: string;
  readonly waitingFor: string;
  readonly waitingOwner: string;
  readonly waitingSinceMs: number | null;
  readonly phase: string;
}

/** The time of the wait may begin this much before the process was stopped, at its last sign of life. */
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

  /** Asks until there is an answer, as a process that has just continued may not answer at once. */
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

  /** Waits for something that happens during the run; fails if the run ends before. */
  async function untilEvent(what: string, isThere: () => boolean): Promise<void> {
    await eventually(what, () => isThere() || endedAs !== undefined, { deadlineMs: DEADLINE_MS });
    assert.equal(endedAs, undefined, `the run ended before ${what}`);
  }

  /** Waits for the rollouts of a step that was not disturbed yet. */
  async function inTheMiddleOfAStep(): Promise<void> {
    const earlier = rolloutStep;
    if (phase === RunPhase.PAUSED) await ask(RunControl.resume);
    await untilEvent("the next step", () => rolloutStep > earlier);
  }

  /** Waits until the disturbed step is done and the run is paused. */
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

  async function runOnPage(): Promise<ShownRun | undefined> {
    const { runs } = (await api("/runs")).body as { runs: ShownRun[] };
    return runs.find((run) => run.runId === runId);
  }

  /** Checks that both the command line and the page name the process in time. */
  async function bothName(
    owner: string,
    stoppedMs: number,
    partLine: RegExp,
    runLine: RegExp,
  ): Promise<void> {
    const deadlineMs = TOLD_WITHIN_MS - (Date.now() - stoppedMs);
    let shown = "";
    let onPage: ShownRun | undefined;
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
            onPage = await runOnPage();
            return onPage?.waitingOwner === owner;
          },
          { deadlineMs },
        ),
      ]);
    } catch (error) {
      throw new Error(`${shown}\n${JSON.stringify(onPage)}`, { cause: error });
    }
    const sinceMs = onPage?.waitingSinceMs ?? 0;
    assert.ok(Math.abs(sinceMs - stoppedMs) < SIGN_OF_LIFE_MS, `since ${sinceMs}, stopped at ${stoppedMs}`);
  }

  const silent = (name: string) => new RegExp(`^${name} +does not answer since \\d+ s`, "m");

  for (const [victim, ownerText] of [
    ["judge", "waiting for the judge"],
    ["dataset", "waiting for the dataset service"],
    ["inference-gateway", "waiting for inference-gateway"],
    ["agent-rollout", "waiting for agent-rollout"],
  ] as const) {
    test(`wait for ${victim}, and both command line and page say so`, async () => {
      await inTheMiddleOfAStep();
      const pid = stack.pidOf(victim);
      const stoppedMs = Date.now();
      using stopped = stopProcess(stack, victim);
      await bothName(
        victim,
        stoppedMs,
        silent(victim),
        new RegExp(`^stopped-\\d+ .*waits for .*\\(${ownerText}\\)`, "m"),
      );
      stopped.continue();
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
      /^stopped-\d+ .*waits for the trainer, which does not answer .*\(waiting for the trainer\)/m,
    );
    stopped.continue();
    await goesOn();
    assert.equal(stack.pidOf("trainer"), pid, "another process was started");
  });

  test("wait for the bus, and both command line and page say so", async () => {
    await inTheMiddleOfAStep();
    const stoppedMs = Date.now();
    using stopped = stopProcess(stack, "nats-server");
    await bothName("bus", stoppedMs, silent("bus"), /^the runs cannot be shown: the bus does not answer/m);
    stopped.continue();
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
          return silent("database").test(output) && /\(waiting for the database\)/.test(output) && output;
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
      // The page reads runs from that database, so it must report that it cannot read them, and not hang.
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
    stopped.continue();
    await goesOn();
  });

  test("end with the rollouts and the weights of an undisturbed run", async () => {
    await ask(RunControl.resume);
    await eventually("the end of the run", () => endedAs, { deadlineMs: DEADLINE_MS });
    assert.equal(endedAs, RunPhase.COMPLETED);
    assert.deepEqual(await trainedBy(runId), undisturbed);
  });

  test("do not wait for the tracer; the status reports it, and it shows the run afterwards", async () => {
    const stopped = stopProcess(stack, "tracer");
    try {
      const run = await runToEnd(stack, await lakeRun({ name: "untraced", ...RUN }), {
        deadlineMs: DEADLINE_MS,
      });
      assert.deepEqual(await trainedBy(run.runId), undisturbed);
      await eventually("the status to report the tracer", async () => silent("tracer").test(await status()), {
        deadlineMs: TOLD_WITHIN_MS,
      });
      stopped.continue();
      await eventually("the page to show the run", async () => {
        const { status: code, body } = await api(`/runs/${run.runId}`);
        return code === 200 && (body as ShownRun).phase === "completed";
      });
    } finally {
      stopped.continue();
    }
  });
});
