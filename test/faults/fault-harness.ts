/** A stack whose services a test disturbs, and the run that is compared with one that nobody disturbed. */

import assert from "node:assert/strict";
import { deadline, runIdOf } from "@hone/core";
import { BucketName, openBucket, readOrdered, StreamName, subjects } from "@hone/messaging";
import {
  type RunEvent,
  RunEventSchema,
  type RunPhase,
  type RunState,
  RunStateSchema,
} from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { complaintsAbout } from "../kill/compare-outcomes.ts";
import { RUN } from "../kill/moments.ts";
import { type RunOutcome, readOutcome } from "../kill/run-outcome.ts";
import { publishRequest } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { type StackOptions, startStack, type TestStack } from "../support/stack.ts";
import { FaultyService } from "./faulty-service.ts";

export interface FaultHarnessOptions<Name extends string> extends Pick<StackOptions, "env"> {
  /** Services that are to be disturbed. */
  readonly disturbed: readonly Name[];
  readonly deadlineMs?: number;
}

export interface FaultHarness<Name extends string> extends AsyncDisposable {
  readonly stack: TestStack;
  readonly services: Readonly<Record<Name, FaultyService>>;
  /**
   * Does the run while `disturb` works on it, and compares.
   * @throws when it does not end by itself, or not as the undisturbed one.
   */
  survives(name: string, disturb: (run: DisturbedRun) => Promise<void>): Promise<void>;
}

/** A run that is on its way. */
export interface DisturbedRun {
  readonly runId: string;
  /** Resolves when the run enters a phase of a step. */
  reaches(phase: RunPhase, step: number): Promise<void>;
  /** Its published state, as soon as it is as `isWanted` says. */
  tells(what: string, isWanted: (state: RunState) => boolean): Promise<RunState>;
}

/** Losses of a network, leases and redeliveries included, on a busy machine. */
const RUN_DEADLINE_MS = 240_000;
const MOMENT_DEADLINE_MS = 120_000;

export async function startFaultHarness<Name extends string>(
  options: FaultHarnessOptions<Name>,
): Promise<FaultHarness<Name>> {
  const { disturbed, env = {}, deadlineMs = RUN_DEADLINE_MS } = options;
  const stack = await startStack({ env, without: disturbed });
  const started: FaultyService[] = [];
  const dispose = async () => {
    await Promise.all(started.map((service) => service[Symbol.asyncDispose]()));
    await stack[Symbol.asyncDispose]();
  };
  try {
    const entries = await Promise.all(
      disturbed.map(async (name) => {
        const service = await FaultyService.start(stack, name, `${name}-0`, env);
        started.push(service);
        return [name, service] as const;
      }),
    );
    const undisturbed = await outcomeOf(stack, "undisturbed", deadlineMs, async () => undefined);
    return {
      stack,
      services: Object.fromEntries(entries) as Record<Name, FaultyService>,
      async survives(name, disturb) {
        const outcome = await outcomeOf(stack, name, deadlineMs, disturb);
        assert.deepEqual(complaintsAbout(outcome, undisturbed), []);
      },
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

async function outcomeOf(
  stack: TestStack,
  name: string,
  deadlineMs: number,
  disturb: (run: DisturbedRun) => Promise<void>,
): Promise<RunOutcome> {
  const { bus } = stack;
  const runId = runIdOf(name, await publishRequest(bus, JSON.stringify(await lakeRun({ name, ...RUN }))));
  try {
    const [ended] = await Promise.all([
      untilEvent(stack, runId, deadlineMs, ({ kind }) => kind.case === "ended"),
      disturb({
        runId,
        reaches: async (phase, step) => {
          await untilEvent(stack, runId, MOMENT_DEADLINE_MS, isPhase(phase, step));
        },
        tells: (what, isWanted) => untilState(stack, runId, what, isWanted),
      }),
    ]);
    assert.equal(ended.kind.case, "ended");
    return await readOutcome(stack, runId);
  } catch (error) {
    throw new Error(`${name}: ${String(error)}\n\n${await stack.describe()}`, { cause: error });
  }
}

function isPhase(phase: RunPhase, step: number): (event: RunEvent) => boolean {
  return ({ kind }) => kind.case === "phaseChanged" && kind.value.phase === phase && kind.value.step === step;
}

function untilEvent(
  { bus }: TestStack,
  runId: string,
  deadlineMs: number,
  isWanted: (event: RunEvent) => boolean,
): Promise<RunEvent> {
  return deadline(`an event of ${runId}`, deadlineMs, async (signal) => {
    const filter = subjects.event(runId, "*");
    for await (const { message } of readOrdered(bus, RunEventSchema, {
      stream: StreamName.events,
      filter,
      signal,
    })) {
      if (isWanted(message)) return message;
    }
    return assert.fail("the events ended");
  });
}

async function untilState(
  { bus }: TestStack,
  runId: string,
  what: string,
  isWanted: (state: RunState) => boolean,
): Promise<RunState> {
  const states = await openBucket(bus, BucketName.runState, RunStateSchema);
  let last: RunState | undefined;
  const look = async () => {
    last = (await states.get(runId))?.value;
    return last !== undefined && isWanted(last) ? last : undefined;
  };
  try {
    return await eventually(`the state to tell ${what}`, look, { deadlineMs: MOMENT_DEADLINE_MS });
  } catch (error) {
    throw new Error(`the state told "${last?.waitingFor}" last`, { cause: error });
  }
}
