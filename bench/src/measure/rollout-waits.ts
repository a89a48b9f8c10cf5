/** Reads from traces what the rollouts of a step waited for. */

import { eventually } from "@hone/testing";

/** Means over the rollouts of a step, in milliseconds, and the end of the step's rollouts. */
export interface RolloutWaits {
  readonly rollouts: number;
  /** From sending the job to the begin of the attempt. */
  readonly forWorker: number;
  /** The whole attempt; the following figures are parts of it. */
  readonly attempt: number;
  readonly environment: number;
  readonly engineQueue: number;
  readonly enginePrefill: number;
  readonly engineDecode: number;
  /** Time of the model's calls outside of the engine: client, gateway and bus. */
  readonly callOverhead: number;
  /** Time of the attempt outside of model and environment: the agent's code, and waiting for the event loop. */
  readonly agent: number;
  /** From the attempt's end to its score. */
  readonly forScore: number;
  /** Time from the end of the step's last attempt to its last score. */
  readonly judgeTail: number;
}

interface SpanView {
  readonly name: string;
  readonly kind: string;
  readonly startMs: number;
  readonly durationMs: number;
}
interface TraceView {
  readonly startedAtMs: number;
  readonly spans: readonly SpanView[];
}

const TRACES_DEADLINE_MS = 20_000;
const PAGE = 200;

/** Reads spans from the tracer of a stack. */
type AskPage = (path: string) => Promise<Response>;

/** Waits until the tracer has the spans of the step. */
export async function readRolloutWaits(ask: AskPage, runId: string, step: number): Promise<RolloutWaits> {
  const api = `/api/runs/${runId}/rollouts`;
  const slots = await readSlots(ask, api, step);
  const traces: TraceView[] = [];
  for (const slot of slots) {
    traces.push(
      await eventually(
        `the trace of ${slot}`,
        async () => {
          const trace = await readJson<TraceView>(ask, `${api}/${slot}/trace`);
          return trace?.spans.some(({ name }) => name === "judge") === true ? trace : undefined;
        },
        { deadlineMs: TRACES_DEADLINE_MS },
      ),
    );
  }
  return summariseTraces(traces);
}

async function readSlots(ask: AskPage, api: string, step: number): Promise<string[]> {
  const slots: string[] = [];
  let before = "";
  do {
    const page = await readJson<{ rollouts: { slot: string }[]; nextBeforeId: number | null }>(
      ask,
      `${api}?split=train&step=${step}&limit=${PAGE}${before}`,
    );
    slots.push(...(page?.rollouts ?? []).map(({ slot }) => slot));
    before = page?.nextBeforeId == null ? "" : `&before=${page.nextBeforeId}`;
  } while (before !== "");
  return slots;
}

/** @returns undefined for something that the tracer does not have yet. */
async function readJson<T>(ask: AskPage, path: string): Promise<T | undefined> {
  const response = await ask(path);
  return response.ok ? ((await response.json()) as T) : undefined;
}

function summariseTraces(traces: readonly TraceView[]): RolloutWaits {
  const mean = (of: (trace: TraceView) => number) =>
    traces.reduce((sum, trace) => sum + of(trace), 0) / traces.length;
  const total = (trace: TraceView, isWanted: (span: SpanView) => boolean) =>
    trace.spans.filter(isWanted).reduce((sum, { durationMs }) => sum + durationMs, 0);
  const named = (name: string) => (trace: TraceView) => total(trace, (span) => span.name === name);
  const attempt = (trace: TraceView) => trace.spans.find(({ name }) => name.startsWith("invoke_agent"));
  const judge = (trace: TraceView) => trace.spans.find(({ name }) => name === "judge");
  const endOf = (span: SpanView | undefined) => (span?.startMs ?? 0) + (span?.durationMs ?? 0);
  const lastEnd = (find: (trace: TraceView) => SpanView | undefined) =>
    Math.max(...traces.map((trace) => trace.startedAtMs + endOf(find(trace))));

  const calls = mean((trace) =>
    total(trace, ({ name, kind }) => name.startsWith("chat") && kind === "client"),
  );
  const environment = mean((trace) => total(trace, ({ name }) => name.startsWith("environment.")));
  const [queue, prefill, decode] = ["engine.queue", "engine.prefill", "engine.decode"].map((name) =>
    mean(named(name)),
  ) as [number, number, number];
  const attemptMs = mean((trace) => attempt(trace)?.durationMs ?? 0);
  return {
    rollouts: traces.length,
    forWorker: mean((trace) => attempt(trace)?.startMs ?? 0),
    attempt: attemptMs,
    environment,
    engineQueue: queue,
    enginePrefill: prefill,
    engineDecode: decode,
    callOverhead: calls - queue - prefill - decode,
    agent: attemptMs - calls - environment,
    forScore: mean((trace) => endOf(judge(trace)) - endOf(attempt(trace))),
    judgeTail: lastEnd(judge) - lastEnd(attempt),
  };
}
