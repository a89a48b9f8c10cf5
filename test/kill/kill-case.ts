/** One case of the matrix: a run, one process killed at one moment, and what became of the run. */

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import path from "node:path";
import { describeError, raceAbortable, runIdOf } from "@hone/core";
import { BucketName, openBucket, StreamName } from "@hone/messaging";
import { ReplicaStateSchema } from "@hone/proto-gen/policy";
import { RunStateSchema } from "@hone/proto-gen/run";
import { eventually, temporaryFolder } from "@hone/testing";
import { publishRequest, refusalIn, stageOf, untilEnded } from "../support/follow.ts";
import { type LakeRunOptions, lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";
import { complaintsAbout } from "./compare-outcomes.ts";
import { leftoversOf, storedRollouts } from "./leftovers.ts";
import { MomentControl } from "./moment-control.ts";
import {
  MOMENTS,
  type Moment,
  type MomentName,
  RUN,
  RUN_ROLLOUTS,
  type Situation,
  type Victim,
} from "./moments.ts";
import { type RunOutcome, readOutcome } from "./run-outcome.ts";
import type { Meeting } from "./seams/moment-gate.ts";

export interface KillHarness extends AsyncDisposable {
  readonly stack: TestStack;
  /** Of the run that nobody disturbed. */
  readonly undisturbed: RunOutcome;
  /** Does the run again while nothing dies. @throws what is not as it was the first time. */
  repeats(): Promise<void>;
  /** Does the run, with a kill. @throws what is wrong, in words. */
  survives(victim: Victim, moment: MomentName): Promise<void>;
  /** Looks at all the runs that were done. @throws what is left of them, or what the tracer lacks. */
  isTidy(): Promise<void>;
}

export interface KillHarnessOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Of one run, from its request to its end. */
  readonly deadlineMs?: number;
  /** What of the runs is not as in the matrix. */
  readonly run?: Partial<Omit<LakeRunOptions, "name">>;
}

/** Start-up of what was killed, leases and redeliveries included, on a busy machine. */
const RUN_DEADLINE_MS = 300_000;
const MOMENT_DEADLINE_MS = 240_000;
/** Above the time after which what a dead process had in work comes again. */
const TIDY_DEADLINE_MS = 120_000;
const OUTCOME_DEADLINE_MS = 60_000;
/** For what is on its way through bus and database while a process stands still. */
const EVIDENCE_DEADLINE_MS = 5_000;
/** One that hangs is given up: the process that stands still goes on by itself after a while, and the moment is gone. */
const LOOK_DEADLINE_MS = 2_000;

/** Starts a stack whose processes can be stopped at a moment, and does the undisturbed run on it. */
export async function startKillHarness(options: KillHarnessOptions = {}): Promise<KillHarness> {
  const { deadlineMs = RUN_DEADLINE_MS } = options;
  const folder = await temporaryFolder("moments");
  const control = new MomentControl(folder.path);
  const { NODE_OPTIONS: extra = "", ...env } = options.env ?? {};
  const { NODE_OPTIONS = "", ...ours } = control.environment;
  const stack = await startStack({
    env: { ...env, ...ours, NODE_OPTIONS: `${NODE_OPTIONS} ${extra}`.trim() },
  });
  const dispose = async () => {
    await stack[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  };
  try {
    const first = await publish(stack, "undisturbed", options.run);
    await untilEnded(stack, first, deadlineMs);
    const undisturbed = await readOutcome(stack, first);
    return {
      stack,
      undisturbed,
      async repeats() {
        const runId = await publish(stack, "repeated", options.run);
        await untilEnded(stack, runId, deadlineMs);
        assert.deepEqual(complaintsAbout(await readOutcome(stack, runId), undisturbed), []);
      },
      survives: (victim, moment) =>
        survives({ stack, control, undisturbed, deadlineMs, run: options.run }, victim, moment),
      isTidy: () => isTidy(stack),
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    const description = await stack.describe();
    await dispose();
    throw new Error(`Cannot do the undisturbed run: ${String(error)}\n\n${description}`, { cause: error });
  }
}

/** What was delivered to a process that died comes again, and is then seen to be done. */
async function isTidy(stack: TestStack): Promise<void> {
  let untidy: string[] = [];
  const look = async () => {
    const stored = Object.entries(await storedRollouts(stack));
    const lacking = stored.filter(([, count]) => count !== RUN_ROLLOUTS);
    untidy = [
      ...(await leftoversOf(stack)),
      ...lacking.map(([runId, count]) => `the tracer has ${count} of ${RUN_ROLLOUTS} rollouts of ${runId}`),
    ];
    return untidy.length === 0;
  };
  await eventually("a tidy stack", look, { deadlineMs: TIDY_DEADLINE_MS }).catch((error: unknown) => {
    throw new Error(`Cannot call the stack tidy:\n${untidy.join("\n")}`, { cause: error });
  });
}

interface CaseTools {
  readonly stack: TestStack;
  readonly control: MomentControl;
  readonly undisturbed: RunOutcome;
  readonly deadlineMs: number;
  readonly run: KillHarnessOptions["run"];
}

async function survives(tools: CaseTools, victim: Victim, name: MomentName): Promise<void> {
  const { stack, control, undisturbed, deadlineMs, run } = tools;
  const moment: Moment = MOMENTS[name];
  control.arm(moment);
  const complaints: string[] = [];
  let cause: unknown;
  let runId = "";
  try {
    runId = await publish(stack, `${victim}-${name}`, run);
    const meeting = await untilMet(tools, runId, name);
    complaints.push(...(await killAt(tools, meeting, victim, runId, moment)));
    await untilEnded(stack, runId, deadlineMs);
    complaints.push(...complaintsAbout(await outcomeOf(stack, runId), undisturbed));
  } catch (error) {
    cause = error;
    complaints.push(describeError(error));
  } finally {
    control.disarm();
  }
  if (complaints.length === 0) return;
  const description = await stack.describe();
  await stack.hone("cancel", runId); // where it has not ended, the next case is not to meet its moments
  throw new Error(
    `Cannot call the run as good as undisturbed after the death of ${victim} (${moment.title}):\n` +
      `${complaints.map((complaint) => `- ${complaint}`).join("\n")}\n\n${description}`,
    { cause },
  );
}

/** This process, too, may still be on its way back to the bus and the database. */
function outcomeOf(stack: TestStack, runId: string): Promise<RunOutcome> {
  return eventually(`what ${runId} left`, () => readOutcome(stack, runId), {
    deadlineMs: OUTCOME_DEADLINE_MS,
  });
}

async function publish(
  { bus }: TestStack,
  name: string,
  changes: KillHarnessOptions["run"] = {},
): Promise<string> {
  const file = await lakeRun({ name, ...RUN, ...changes });
  return runIdOf(name, await publishRequest(bus, JSON.stringify(file)));
}

async function untilMet({ stack, control }: CaseTools, runId: string, name: MomentName): Promise<Meeting> {
  const look = async () => {
    const meeting = control.meeting();
    if (meeting !== undefined) return { meeting, refusal: undefined };
    const stage = await stageOf(stack, runId);
    const refusal = stage === undefined ? await refusalIn(stack, runId) : undefined;
    return stage === "completed" || refusal !== undefined ? { meeting, refusal } : undefined;
  };
  const { meeting, refusal } = await eventually(`the moment ${name}`, look, {
    deadlineMs: MOMENT_DEADLINE_MS,
  });
  if (refusal !== undefined) throw new Error(`the request was refused: ${refusal}`);
  if (meeting === undefined) throw new Error(`the run ended and its moment ${name} never came`);
  if (!meeting.isOut)
    throw new Error(`what comes before the moment did not leave ${meeting.service} in time`);
  return meeting;
}

/** Kills the victim while the other process stands still. @returns what is wrong with the moment. */
async function killAt(
  { stack, control }: CaseTools,
  meeting: Meeting,
  victim: Victim,
  runId: string,
  moment: Moment,
): Promise<string[]> {
  const holder = stack.pidOf(moment.service);
  if (holder !== meeting.pid)
    throw new Error(`process ${meeting.pid} stopped, but ${moment.service} is ${holder}`);
  // What was let out just before may still be on its way.
  let situation: Situation | undefined;
  const isNow = async () => {
    situation = await raceAbortable(look(stack, runId), AbortSignal.timeout(LOOK_DEADLINE_MS));
    return moment.isNow(situation);
  };
  const wrong: string[] = [];
  await eventually("the moment's own evidence", isNow, { deadlineMs: EVIDENCE_DEADLINE_MS }).catch(() => {
    wrong.push(
      `the world is not as it must be at this moment (${meeting.what}): ${JSON.stringify(situation)}`,
    );
  });
  const { committed, published } = situation ?? {};
  if ((published ?? 0) > (committed ?? 0)) {
    wrong.push(
      `RUN_STATE tells of version ${published} while version ${committed} is the last that was committed`,
    );
  }
  let isReleased = false;
  await stack.kill(victim, {
    whenGone: () => {
      isReleased = true;
      control.release();
    },
  });
  if (!isReleased) throw new Error(`${victim} was not killed at the moment`);
  return wrong;
}

async function look({ bus, sql, stateFolder }: TestStack, runId: string): Promise<Situation> {
  const [row] = await sql<
    { version: number | null }[]
  >`select version from trainer.runs where run_id = ${runId}`;
  const runs = await openBucket(bus, BucketName.runState, RunStateSchema);
  const replicas = await openBucket(bus, BucketName.replicas, ReplicaStateSchema);
  const replica = (await replicas.entries()).find(({ value }) => value.model === runId);
  const { state } = await bus.manager.streams.info(StreamName.runs);
  return {
    requests: state.messages,
    committed: row?.version,
    published: (await runs.get(runId))?.value.version,
    loaded: replica?.value.versions.at(-1),
    states: namesIn(path.join(stateFolder, "runs", runId, "state")),
  };
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // no state was written yet
  }
}
