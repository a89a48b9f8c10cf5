/** A stack whose services a test disturbs. Its runs are compared with an undisturbed run. */

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
import { eventually, temporaryFolder } from "@hone/testing";
import { complaintsAbout } from "../kill/compare-outcomes.ts";
import { MomentControl } from "../kill/moment-control.ts";
import { RUN } from "../kill/moments.ts";
import { type RunOutcome, readOutcome } from "../kill/run-outcome.ts";
import { failureOf } from "../support/failure.ts";
import { publishRequest, untilEnded } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";
import { FaultyService } from "./faulty-service.ts";

/** Services that can be disturbed: those that a run needs. */
export const DISTURBED = ["dataset", "judge", "inference-gateway", "agent-rollout", "trainer"] as const;
export type DisturbedService = (typeof DISTURBED)[number];

export interface FaultHarness extends AsyncDisposable {
  readonly stack: TestStack;
  readonly services: Readonly<Record<DisturbedService, FaultyService>>;
  /** Stops the services at exact moments. */
  readonly moments: MomentControl;
  /**
   * Runs while `disturb` is active, and compares the outcome with that of the undisturbed run.
   * @throws when the run does not end by itself, or has another outcome.
   */
  survives(name: string, disturb: (run: DisturbedRun) => Promise<void>): Promise<void>;
}

/** A run that is disturbed. */
export interface DisturbedRun {
  readonly runId: string;
  /** Resolves when the run is over. */
  ends(): Promise<void>;
  /** Resolves when the run enters a phase of a step. */
  reaches(phase: RunPhase, step: number): Promise<void>;
  /** Resolves with the run's published state once `isWanted` accepts it. */
  showsState(what: string, isWanted: (state: RunState) => boolean): Promise<RunState>;
}

/** Enough for lost connections, leases and redeliveries on a busy machine. */
const RUN_DEADLINE_MS = 240_000;
const MOMENT_DEADLINE_MS = 120_000;
/** Lease of a run. It is short, because tests wait until that of a stopped trainer expires. */
export const LEASE_MS = 2_000;

export async function startFaultHarness(): Promise<FaultHarness> {
  const folder = await temporaryFolder("moments");
  const moments = new MomentControl(folder.path);
  const stack = await startStack({ without: DISTURBED });
  const started: FaultyService[] = [];
  const dispose = async () => {
    moments.disarm();
    await Promise.all(started.map((service) => service[Symbol.asyncDispose]()));
    await stack[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  };
  try {
    const env = { ...moments.environment, HONE_TRAINER_LEASE_MS: String(LEASE_MS) };
    const entries = await Promise.all(
      DISTURBED.map(async (name) => {
        const service = await FaultyService.start(stack, name, `${name}-0`, env);
        started.push(service);
        return [name, service] as const;
      }),
    );
    const undisturbed = await outcomeOf(stack, "undisturbed", async () => undefined);
    return {
      stack,
      moments,
      services: Object.fromEntries(entries) as Record<DisturbedService, FaultyService>,
      async survives(name, disturb) {
        const outcome = await outcomeOf(stack, name, disturb);
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
  disturb: (run: DisturbedRun) => Promise<void>,
): Promise<RunOutcome> {
  const runId = runIdOf(
    name,
    await publishRequest(stack.bus, JSON.stringify(await lakeRun({ name, ...RUN }))),
  );
  const ended = untilEnded(stack, runId, RUN_DEADLINE_MS);
  const disturbing = disturb({
    runId,
    ends: async () => {
      await ended;
    },
    reaches: async (phase, step) => {
      await untilEvent(stack, runId, MOMENT_DEADLINE_MS, isPhase(phase, step));
    },
    showsState: (what, isWanted) => untilState(stack, runId, what, isWanted),
  });
  try {
    await Promise.all([ended, disturbing]);
    return await readOutcome(stack, runId);
  } catch (error) {
    throw failureOf(error, await stack.describe());
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
    return await eventually(`a state that shows ${what}`, look, { deadlineMs: MOMENT_DEADLINE_MS });
  } catch (error) {
    throw new Error(`the last state waited for "${last?.waitingFor}"`, { cause: error });
  }
}
