/** Publishing a run request by hand, and reading the event stream from it on. */

import assert from "node:assert/strict";
import { fromBinary } from "@bufbuild/protobuf";
import { deadline, runIdOf } from "@hone/core";
import { type Bus, publishBytes, readOrdered, StreamName, subjects } from "@hone/messaging";
import { type RunEvent, RunEventSchema, RunPhase } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import type { TestStack } from "./stack.ts";

type EventOf<Case extends RunEvent["kind"]["case"]> = Extract<RunEvent["kind"], { case: Case }>;

/** Everything that was said of a run that came to its end. */
export interface FinishedRun {
  readonly runId: string;
  readonly steps: EventOf<"stepCompleted">["value"][];
  readonly evaluations: EventOf<"evaluated">["value"][];
  readonly ended: EventOf<"ended">["value"];
}

export interface FollowOptions {
  /** Called for each event in order; reading waits for it. */
  readonly onEvent?: (event: RunEvent) => Promise<void> | void;
  readonly deadlineMs: number;
}

/** Publishes the text of a run file, as any NATS client can. @returns the sequence of the request. */
export async function publishRequest(bus: Bus, text: string): Promise<number> {
  const { sequence } = await publishBytes(bus, subjects.runRequest(), text, undefined);
  return sequence;
}

/** Publishes a run and follows it until it ends. Fails when it is refused or does not complete. */
export async function runToEnd(
  { bus, describe }: TestStack,
  run: Readonly<Record<string, unknown>> & { readonly name: string },
  options: FollowOptions,
): Promise<FinishedRun> {
  const sequence = await publishRequest(bus, JSON.stringify(run));
  const runId = runIdOf(run.name, sequence);
  const finished: Pick<FinishedRun, "steps" | "evaluations"> = { steps: [], evaluations: [] };
  const follow = async (signal: AbortSignal): Promise<FinishedRun> => {
    const filter = subjects.event(runId, "*");
    for await (const { message } of readOrdered(bus, RunEventSchema, {
      stream: StreamName.events,
      filter,
      signal,
    })) {
      await options.onEvent?.(message);
      const { kind } = message;
      if (kind.case === "stepCompleted") finished.steps.push(kind.value);
      if (kind.case === "evaluated") finished.evaluations.push(kind.value);
      if (kind.case === "ended") {
        assert.equal(kind.value.phase, RunPhase.COMPLETED, kind.value.reason);
        return { runId, ...finished, ended: kind.value };
      }
    }
    return assert.fail(`the events of ${runId} ended before it did`);
  };
  try {
    return await deadline(`the end of ${runId}`, options.deadlineMs, async (signal) => {
      const over = new AbortController();
      const either = AbortSignal.any([signal, over.signal]);
      try {
        return await Promise.race([follow(either), failWhenRefused(bus, sequence, either)]);
      } finally {
        over.abort();
      }
    });
  } catch (error) {
    throw new Error(await describe(), { cause: error });
  }
}

/**
 * Looks at the run's row until it is over, however it ended, while bus and database come and go.
 * @throws with the reasons when the request was refused, which leaves no row.
 */
export async function untilEnded(stack: TestStack, runId: string, deadlineMs: number): Promise<void> {
  const look = async () => {
    const stage = await stageOf(stack, runId);
    const refusal = stage === undefined ? await refusalIn(stack, runId) : undefined;
    const isOver = stage !== undefined && ["completed", "failed", "cancelled"].includes(stage);
    return isOver || refusal !== undefined ? { refusal } : undefined;
  };
  const { refusal } = await eventually(`the end of ${runId}`, look, { deadlineMs });
  if (refusal !== undefined) throw new Error(`the request of ${runId} was refused: ${refusal}`);
}

/** How far a run is by its row; undefined before it has one. */
export async function stageOf({ sql }: TestStack, runId: string): Promise<string | undefined> {
  const [row] = await sql<{ stage: string }[]>`select stage from trainer.runs where run_id = ${runId}`;
  return row?.stage;
}

/** Why the request of a run was refused, as far as it is known now; undefined when it was not. */
export async function refusalIn({ bus }: TestStack, runId: string): Promise<string | undefined> {
  const sequence = Number(runId.slice(runId.lastIndexOf("-") + 1));
  const query = { last_by_subj: subjects.requestRefused(sequence) };
  const told = await bus.manager.streams.getMessage(StreamName.events, query);
  if (told === null) return undefined;
  const { kind } = fromBinary(RunEventSchema, told.data);
  assert.ok(kind.case === "refused", kind.case);
  return reasonsIn(kind.value);
}

/** Reads what was answered to a request that is refused. */
export async function refusalOf(
  bus: Bus,
  sequence: number,
  deadlineMs: number,
): Promise<EventOf<"refused">["value"]> {
  return deadline(`the refusal of request ${sequence}`, deadlineMs, (signal) =>
    untilRefused(bus, sequence, signal),
  );
}

async function failWhenRefused(bus: Bus, sequence: number, signal: AbortSignal): Promise<never> {
  return assert.fail(reasonsIn(await untilRefused(bus, sequence, signal)));
}

function reasonsIn({ problems }: EventOf<"refused">["value"]): string {
  return problems.map(({ message }) => message).join("\n");
}

async function untilRefused(
  bus: Bus,
  sequence: number,
  signal: AbortSignal,
): Promise<EventOf<"refused">["value"]> {
  const filter = subjects.requestRefused(sequence);
  for await (const { message } of readOrdered(bus, RunEventSchema, {
    stream: StreamName.events,
    filter,
    signal,
  })) {
    if (message.kind.case === "refused") return message.kind.value;
  }
  return assert.fail("the event stream ended");
}
