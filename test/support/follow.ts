/** Publishes run requests by hand, and follows their events. */

import assert from "node:assert/strict";
import { fromBinary } from "@bufbuild/protobuf";
import { deadline, runIdOf } from "@hone/core";
import { type Bus, publishBytes, readOrdered, StreamName, subjects } from "@hone/messaging";
import { type RunEvent, RunEventSchema, RunPhase } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { failureOf } from "./failure.ts";
import type { TestStack } from "./stack.ts";

type EventOf<Case extends RunEvent["kind"]["case"]> = Extract<RunEvent["kind"], { case: Case }>;

/** The events of a run that has ended. */
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
    throw failureOf(error, await describe());
  }
}

/**
 * Polls the run's row until the run has ended in any way; bus and database may restart meanwhile.
 * @throws with the reasons if the request was refused, as it then has no row.
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

/** The stage in the run's row; undefined before the run has one. */
export async function stageOf({ sql }: TestStack, runId: string): Promise<string | undefined> {
  const [row] = await sql<{ stage: string }[]>`select stage from trainer.runs where run_id = ${runId}`;
  return row?.stage;
}

/** Why the run's request was refused; undefined if no refusal is known yet. */
export async function refusalIn({ bus }: TestStack, runId: string): Promise<string | undefined> {
  const sequence = Number(runId.slice(runId.lastIndexOf("-") + 1));
  const query = { last_by_subj: subjects.requestRefused(sequence) };
  const stored = await bus.manager.streams.getMessage(StreamName.events, query);
  if (stored === null) return undefined;
  const { kind } = fromBinary(RunEventSchema, stored.data);
  assert.ok(kind.case === "refused", kind.case);
  return reasonsIn(kind.value);
}

/** Waits for the refusal of a request and returns it. */
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
