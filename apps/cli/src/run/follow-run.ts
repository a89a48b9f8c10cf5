/**
 * Submits a run and follows its events, as any client of the bus can.
 *
 * The stream gives a request its sequence number, and the run is then called `<name>-<sequence>`. A refusal is an event of the
 * request. Events are read from a position before the request was published, so that none is missed.
 */

import { create } from "@bufbuild/protobuf";
import { delay, runIdOf } from "@hone/core";
import {
  type Bucket,
  BucketName,
  type Bus,
  followOrdered,
  openBucket,
  publishStored,
  StreamName,
  subjects,
} from "@hone/messaging";
import {
  type Problem,
  type RunEvent,
  RunEventSchema,
  RunPhase,
  RunRequestSchema,
  type RunState,
  RunStateSchema,
} from "@hone/proto-gen/run";
import { UsageError } from "../errors.ts";
import { afterEvent, newRunView, type RunView } from "./run-view.ts";

/** How a request ended. */
export type RequestOutcome =
  | { readonly kind: "refused"; readonly problems: readonly Problem[] }
  | { readonly kind: "ended"; readonly runId: string };

export interface FollowOptions {
  readonly signal: AbortSignal;
  readonly onEvent: (event: RunEvent, runId: string) => void;
  /** Gets the run's state until its first event, because waits before a run is accepted, such as for its model, cause no events. */
  readonly onState: (state: RunState) => void;
}

const PUBLISH_DEADLINE_MS = 15_000;
const STATE_EVERY_MS = 1_000;

/** A request that the stream has stored. */
export interface SubmittedRequest {
  readonly sequence: number;
  readonly runId: string;
  /** Position of the event stream before the request. */
  readonly eventsFrom: number;
}

/** Publishes a run request. */
export async function submitRun(
  bus: Bus,
  name: string,
  runFile: string,
  signal: AbortSignal,
): Promise<SubmittedRequest> {
  const { state } = await bus.manager.streams.info(StreamName.events);
  const { sequence } = await publishStored(
    bus,
    subjects.runRequest(),
    RunRequestSchema,
    create(RunRequestSchema, { runFile, requestedBy: "hone run" }),
    { messageId: crypto.randomUUID(), deadlineMs: PUBLISH_DEADLINE_MS, signal },
  );
  return { sequence, runId: runIdOf(name, sequence), eventsFrom: state.last_seq + 1 };
}

/** Follows a request to its end. */
export async function followRequest(
  bus: Bus,
  request: SubmittedRequest,
  options: FollowOptions,
): Promise<RequestOutcome> {
  const done = new AbortController();
  const signal = AbortSignal.any([options.signal, done.signal]);
  try {
    return await Promise.race([
      followRun(bus, request.runId, request.eventsFrom, { ...options, signal }),
      untilRefused(bus, request, signal),
    ]);
  } finally {
    done.abort();
    options.signal.throwIfAborted();
  }
}

/**
 * Follows a run from a position of the event stream to its end.
 * @param resumption how often the run was resumed after a failure; an end before the last resumption is ignored.
 */
export async function followRun(
  bus: Bus,
  runId: string,
  eventsFrom: number,
  options: FollowOptions,
  resumption = 0,
): Promise<RequestOutcome> {
  const hasEvent = new AbortController();
  void pollState(bus, runId, AbortSignal.any([options.signal, hasEvent.signal]), options.onState);
  const events = followOrdered(bus, RunEventSchema, {
    stream: StreamName.events,
    filter: subjects.event(runId, "*"),
    fromSequence: eventsFrom,
    signal: options.signal,
  });
  try {
    for await (const { message } of events) {
      hasEvent.abort();
      options.onEvent(message, runId);
      if (message.kind.case === "ended" && message.kind.value.resumption >= resumption)
        return { kind: "ended", runId };
    }
    return never(options.signal);
  } finally {
    hasEvent.abort();
  }
}

/** Reads the run's state until the signal aborts; never rejects. A failed read is ignored, as only events decide how the run ends. */
async function pollState(
  bus: Bus,
  runId: string,
  signal: AbortSignal,
  onState: (state: RunState) => void,
): Promise<void> {
  let bucket: Bucket<RunState> | undefined;
  while (!signal.aborted) {
    try {
      bucket ??= await openBucket(bus, BucketName.runState, RunStateSchema);
      const entry = await bucket.get(runId);
      if (entry !== undefined && !signal.aborted) onState(entry.value);
    } catch {
      // The bus does not answer, or the entry is not a valid state.
    }
    await delay(STATE_EVERY_MS, { signal }).catch(() => undefined); // the signal aborted, so the loop ends
  }
}

async function untilRefused(
  bus: Bus,
  request: SubmittedRequest,
  signal: AbortSignal,
): Promise<RequestOutcome> {
  const events = followOrdered(bus, RunEventSchema, {
    stream: StreamName.events,
    filter: subjects.requestRefused(request.sequence),
    fromSequence: request.eventsFrom,
    signal,
  });
  for await (const { message } of events) {
    if (message.kind.case === "refused") return { kind: "refused", problems: message.kind.value.problems };
  }
  return never(signal);
}

/** The states of all runs that have one. */
export async function runStates(bus: Bus): Promise<RunState[]> {
  const bucket = await openBucket(bus, BucketName.runState, RunStateSchema);
  const entries = await bucket.entries();
  return entries.map(({ value }) => value);
}

/** A run's id ends with the number of its request, so the newest run has the highest number. */
export async function newestRun(bus: Bus): Promise<string> {
  const sequenceOf = (runId: string) => Number(runId.split("-").at(-1));
  const states = await runStates(bus);
  const newest = states.map(({ runId }) => runId).sort((a, b) => sequenceOf(b) - sequenceOf(a))[0];
  if (newest === undefined) throw new UsageError("there are no runs in this stack");
  return newest;
}

/** Reads a run's stored events, without waiting for more. */
export async function readRun(bus: Bus, runId: string, signal: AbortSignal): Promise<RunView> {
  let view = newRunView(runId);
  const filter = subjects.event(runId, "*");
  const { state } = await bus.manager.streams.info(StreamName.events, { subjects_filter: filter });
  let remaining = Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
  if (remaining === 0) return view;
  const done = new AbortController();
  const reading = { stream: StreamName.events, filter, signal: AbortSignal.any([signal, done.signal]) };
  for await (const { message } of followOrdered(bus, RunEventSchema, reading)) {
    view = afterEvent(view, message);
    remaining--;
    if (remaining === 0) break;
  }
  done.abort();
  signal.throwIfAborted();
  return view;
}

/** Whether a run in this phase has ended. */
export function isEnded(phase: RunPhase): boolean {
  return phase === RunPhase.COMPLETED || phase === RunPhase.FAILED || phase === RunPhase.CANCELLED;
}

/** Throws the signal's reason after a stream of events ended, which happens only when its signal aborts. */
function never(signal: AbortSignal): never {
  signal.throwIfAborted();
  throw new Error("unreachable: the event stream ends by its signal only");
}
