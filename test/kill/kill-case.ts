/** A case of the kill matrix: does a run, kills one process at one moment, and checks the outcome. */

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import path from "node:path";
import { describeError, raceAbortable, runIdOf } from "@hone/core";
import { BucketName, openBucket, StreamName } from "@hone/messaging";
import { ReplicaStateSchema } from "@hone/proto-gen/policy";
import { RunStateSchema } from "@hone/proto-gen/run";
import { eventually, temporaryFolder } from "@hone/testing";
import { publishRequest, refusalIn, stageOf, untilEnded } from "../support/follow.ts";
import { leftoversOf, storedRollouts, untilTidy } from "../support/inspect/leftovers.ts";
import { type LakeRunOptions, lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";
import { complaintsAbout } from "./compare-outcomes.ts";
import { MomentControl } from "./moment-control.ts";
import {
  MOMENTS,
  type Moment,
  type MomentName,
  RUN,
  RUN_ROLLOUTS,
  SAMPLING_MOMENTS,
  type SamplingMomentName,
  type Situation,
  type Victim,
} from "./moments.ts";
import { type RunOutcome, readOutcome } from "./run-outcome.ts";
import type { Meeting } from "./seams/moment-gate.ts";

export interface KillHarness extends AsyncDisposable {
  readonly stack: TestStack;
  /** Outcome of the undisturbed run. */
  readonly undisturbed: RunOutcome;
  /** Does the run again without a kill. @throws the differences to the first time. */
  repeats(): Promise<void>;
  /** Does the run with a kill. @throws what is wrong with its outcome. */
  survives(victim: Victim, moment: MomentName | SamplingMomentName): Promise<void>;
  /** Checks all runs that were done. @throws what they left that should be removed, and what the tracer lacks. */
  isTidy(): Promise<void>;
}

export interface KillHarnessOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Time limit of one run, from its request to its end. */
  readonly deadlineMs?: number;
  /** Differences to the matrix's runs. */
  readonly run?: Partial<Omit<LakeRunOptions, "name">>;
  /**
   * What is wrong with a run that was disturbed, where it is not to end as the undisturbed one does.
   * @default its differences to the undisturbed run
   */
  readonly complaints?: (stack: TestStack, run: PublishedRun) => Promise<string[]>;
}

/** A run with its file. */
export interface PublishedRun {
  readonly runId: string;
  readonly file: Awaited<ReturnType<typeof lakeRun>>;
}

/** Enough for restarts, leases and redeliveries on a busy machine. */
const RUN_DEADLINE_MS = 300_000;
/** The part of a run's deadline in which it must reach its moment. */
const MOMENT_SHARE = 0.8;
/** Longer than the time after which the work of a dead process is redelivered. */
const TIDY_DEADLINE_MS = 120_000;
const OUTCOME_DEADLINE_MS = 60_000;
/** Enough for messages that are still on their way through bus and database after a process stopped. */
const EVIDENCE_DEADLINE_MS = 5_000;
/** A query that hangs is abandoned, because the stopped process continues by itself after a while. */
const LOOK_DEADLINE_MS = 2_000;

/** Starts a stack whose processes can be stopped at a moment, and does an undisturbed run on it. */
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
    const { runId: first } = await publish(stack, "undisturbed", options.run);
    await untilEnded(stack, first, deadlineMs);
    const undisturbed = await readOutcome(stack, first);
    const likeUndisturbed = async ({ runId }: PublishedRun) =>
      complaintsAbout(await outcomeOf(stack, runId), undisturbed);
    const { complaints } = options;
    const complaintsOf =
      complaints === undefined ? likeUndisturbed : (run: PublishedRun) => complaints(stack, run);
    return {
      stack,
      undisturbed,
      async repeats() {
        const run = await publish(stack, "repeated", options.run);
        await untilEnded(stack, run.runId, deadlineMs);
        assert.deepEqual(await complaintsOf(run), []);
      },
      survives: (victim, moment) =>
        survives({ stack, control, complaintsOf, deadlineMs, run: options.run }, victim, moment),
      // Where runs may differ, the number of their rollouts may, too.
      isTidy: () => isTidy(stack, complaints === undefined),
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    const description = await stack.describe();
    await dispose();
    throw new Error(`the undisturbed run failed: ${String(error)}\n\n${description}`, { cause: error });
  }
}

/** Waits, because messages that were delivered to a dead process are first redelivered. */
async function isTidy(stack: TestStack, hasEqualRuns: boolean): Promise<void> {
  const look = async () => {
    const stored = hasEqualRuns ? Object.entries(await storedRollouts(stack)) : [];
    const lacking = stored.filter(([, count]) => count !== RUN_ROLLOUTS);
    return [
      ...(await leftoversOf(stack)),
      ...lacking.map(([runId, count]) => `the tracer has ${count} of ${RUN_ROLLOUTS} rollouts of ${runId}`),
    ];
  };
  await untilTidy(look, TIDY_DEADLINE_MS);
}

interface CaseTools {
  readonly stack: TestStack;
  readonly control: MomentControl;
  readonly complaintsOf: (run: PublishedRun) => Promise<string[]>;
  readonly deadlineMs: number;
  readonly run: KillHarnessOptions["run"];
}

async function survives(
  tools: CaseTools,
  victim: Victim,
  name: MomentName | SamplingMomentName,
): Promise<void> {
  const { stack, control, complaintsOf, deadlineMs } = tools;
  const moment: Moment = { ...MOMENTS, ...SAMPLING_MOMENTS }[name];
  control.arm(moment);
  const complaints: string[] = [];
  let cause: unknown;
  let runId = "";
  try {
    const run = await publish(stack, `${victim}-${name}`, tools.run);
    runId = run.runId;
    const meeting = await untilMet(tools, runId, name);
    complaints.push(...(await killAt(tools, meeting, victim, runId, moment)));
    await untilEnded(stack, runId, deadlineMs);
    complaints.push(...(await complaintsOf(run)));
  } catch (error) {
    cause = error;
    complaints.push(describeError(error));
  } finally {
    control.disarm();
  }
  if (complaints.length === 0) return;
  const description = await stack.describe();
  await stack.hone("cancel", runId); // a run that has not ended must not reach the next case's moment
  throw new Error(
    `the run is not as it should be after the death of ${victim} (${moment.title}):\n` +
      `${complaints.map((complaint) => `- ${complaint}`).join("\n")}\n\n${description}`,
    { cause },
  );
}

/** Reads the outcome repeatedly, because this process may still be reconnecting to the bus and the database. */
function outcomeOf(stack: TestStack, runId: string): Promise<RunOutcome> {
  return eventually(`what ${runId} left`, () => readOutcome(stack, runId), {
    deadlineMs: OUTCOME_DEADLINE_MS,
  });
}

async function publish(
  { bus }: TestStack,
  name: string,
  changes: KillHarnessOptions["run"] = {},
): Promise<PublishedRun> {
  const file = await lakeRun({ name, ...RUN, ...changes });
  return { runId: runIdOf(name, await publishRequest(bus, JSON.stringify(file))), file };
}

async function untilMet(tools: CaseTools, runId: string, name: string): Promise<Meeting> {
  const { stack, control, deadlineMs } = tools;
  const look = async () => {
    const meeting = control.meeting();
    if (meeting !== undefined) return { meeting, refusal: undefined };
    const stage = await stageOf(stack, runId);
    const refusal = stage === undefined ? await refusalIn(stack, runId) : undefined;
    return stage === "completed" || refusal !== undefined ? { meeting, refusal } : undefined;
  };
  const { meeting, refusal } = await eventually(`the moment ${name}`, look, {
    deadlineMs: deadlineMs * MOMENT_SHARE,
  });
  if (refusal !== undefined) throw new Error(`the request was refused: ${refusal}`);
  if (meeting === undefined) throw new Error(`the run ended without reaching the moment ${name}`);
  if (!meeting.isOut)
    throw new Error(`${meeting.service} could not send in time what it wrote before the moment`);
  return meeting;
}

/** Kills the victim while the process at the moment is stopped. @returns what is wrong with the moment. */
async function killAt(
  { stack, control }: CaseTools,
  meeting: Meeting,
  victim: Victim,
  runId: string,
  moment: Moment,
): Promise<string[]> {
  const holder = stack.pidOf(moment.service);
  if (holder !== meeting.pid)
    throw new Error(`process ${meeting.pid} stopped, but that of ${moment.service} is ${holder}`);
  // Messages that were sent just before may still be on their way.
  let situation: Situation | undefined;
  const isNow = async () => {
    situation = await raceAbortable(look(stack, runId), AbortSignal.timeout(LOOK_DEADLINE_MS));
    return moment.isNow(situation);
  };
  const wrong: string[] = [];
  await eventually("the evidence of the moment", isNow, { deadlineMs: EVIDENCE_DEADLINE_MS }).catch(() => {
    wrong.push(`the situation is not that of this moment (${meeting.what}): ${JSON.stringify(situation)}`);
  });
  const { committed, published } = situation ?? {};
  if ((published ?? 0) > (committed ?? 0)) {
    wrong.push(`RUN_STATE shows version ${published}, but the last committed version is ${committed}`);
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
