/**
 * Measures a run on the lake (test/support/lake.yaml) on all six services, started by the command line as a user does, with tracing.
 *
 * P1: only steps after the warm-up steps count, when code is compiled and queues are filled.
 * P2: messages and bytes are counted by the bus server in both directions, CPU time by the system per process.
 * P3: waits are read from the traces of the last step.
 */

import { readFileSync } from "node:fs";
import path from "node:path";
import { TerminalError } from "@hone/core";
import { freePort, LOOPBACK } from "@hone/embedded";
import { lakeRun, runToEnd, startStack, type TestStack } from "@hone/integration-tests/support";
import { MetricName } from "@hone/telemetry";
import { startNats } from "@hone/testing";
import { cpuTimesOf } from "../measure/process-times.ts";
import { type RolloutWaits, readRolloutWaits } from "../measure/rollout-waits.ts";
import { measured, type Row, type Section } from "../report/report.ts";
import type { BenchSettings } from "../section.ts";

interface PipelineShape {
  readonly tasksPerStep: number;
  readonly minibatches: number;
  readonly warmStartTasks: number;
  /** Steps that are not counted (P1). */
  readonly warmSteps: number;
  readonly countedSteps: number;
}

/** The run file's step, but fewer steps and a shorter warm start. */
const FULL: PipelineShape = {
  tasksPerStep: 32,
  minibatches: 8,
  warmStartTasks: 300,
  warmSteps: 6,
  countedSteps: 14,
};
/** As many steps as the warm-up of the learning rate has, which the run file's check requires. */
const QUICK: PipelineShape = {
  tasksPerStep: 4,
  minibatches: 2,
  warmStartTasks: 32,
  warmSteps: 2,
  countedSteps: 3,
};
const RUN_DEADLINE_MS = 240_000;
const SERVICES = ["trainer", "dataset", "agent-rollout", "inference-gateway", "judge", "tracer"];

/** Counters at one moment. */
interface Counters {
  readonly atMs: number;
  readonly cpuMs: Readonly<Record<string, number>>;
  readonly messages: number;
  readonly bytes: number;
}

export async function measurePipeline(settings: BenchSettings): Promise<Section> {
  const shape = settings.isQuick ? QUICK : FULL;
  settings.say("the pipeline: starting the stack");
  const monitorPort = await freePort();
  await using nats = await startNats({ monitorPort });
  await using stack = await startStack({ env: { HONE_NATS_URL: nats.url } });
  const pids = pidsOf(stack, nats.pid);
  const count = () => readCounters(pids, monitorPort);

  const steps = shape.warmSteps + shape.countedSteps;
  settings.say(`the pipeline: ${steps} steps of ${shape.tasksPerStep} tasks`);
  const run = await lakeRun({ name: "bench", steps, evalTasks: 1, ...shape });
  let first: Counters | undefined;
  const { runId, steps: completed } = await runToEnd(stack, run, {
    deadlineMs: RUN_DEADLINE_MS,
    async onEvent({ kind }) {
      if (kind.case === "stepCompleted" && kind.value.step === shape.warmSteps) first = await count(); // P1
    },
  });
  const last = await count();
  if (first === undefined) {
    throw new TerminalError("BENCH_RUN", "the run ended before its warm-up steps, so nothing was counted");
  }
  const counted = completed.filter(({ step }) => step > shape.warmSteps).map(({ metrics }) => metrics);
  settings.say("the pipeline: reading traces");
  const waits = await readRolloutWaits((path) => stack.page(path), runId, steps);
  return {
    name: "pipeline",
    title: `GRPO on the lake, all six services: ${counted.length} steps of ${shape.tasksPerStep} tasks behind ${shape.warmSteps} warm ones`,
    rows: [
      ...stepRows(counted, waits),
      ...busRows(first, last, counted),
      ...cpuRows(first, last, counted),
      ...waitRows(waits),
    ],
  };
}

type Figures = Readonly<Record<string, number>>;

function stepRows(steps: readonly Figures[], waits: RolloutWaits): Row[] {
  const figure = (name: string) => steps.map((metrics) => metrics[name] ?? Number.NaN);
  const ms = (name: string, metric: string, meaning: string) =>
    measured(name, "ms", figure(metric), meaning, "lower");
  const perSecond = steps.map(
    (metrics) => (1_000 * metrics[MetricName.episodes]!) / metrics[MetricName.timeStepMs]!,
  );
  return [
    measured("episodes", "episodes/s", perSecond, "rollouts trained a second, whole steps, commit included"),
    ms("a step", MetricName.timeStepMs, "spread here is between steps: episodes differ in length"),
    ms("  rollout", MetricName.timeRolloutMs, "tasks, rollouts and scores; the training engine idles"),
    measured(
      "    judge alone",
      "ms",
      [waits.judgeTail],
      "of it, after the last attempt: everything waits for the judge",
      "lower",
    ),
    ms("  train", MetricName.timeTrainMs, "optimizer at work; agents, judge and generation idle"),
    ms("  commit", MetricName.timeCommitMs, "state files, ledger, run state; all others idle"),
    ms("  publish", MetricName.timePublishMs, "until a replica serves the new version; all others idle"),
  ];
}

function busRows(first: Counters, last: Counters, steps: readonly Figures[]): Row[] {
  const episodes = episodesOf(steps);
  return [
    measured(
      "messages an episode",
      "messages",
      [(last.messages - first.messages) / episodes],
      "into and out of the bus server, acknowledgements included",
      "lower",
    ),
    measured("bytes an episode", "KiB", [(last.bytes - first.bytes) / episodes / 1_024], "the same", "lower"),
  ];
}

function cpuRows(first: Counters, last: Counters, steps: readonly Figures[]): Row[] {
  const episodes = episodesOf(steps);
  const wallMs = last.atMs - first.atMs;
  const used = Object.entries(last.cpuMs).map(([name, ms]) => ({ name, ms: ms - (first.cpuMs[name] ?? 0) }));
  const sum = used.reduce((total, { ms }) => total + ms, 0);
  const row = (name: string, ms: number) => {
    const busy = Math.round((100 * ms) / wallMs);
    return measured(
      name,
      "ms",
      [ms / episodes],
      `busy ${busy} % of a core${busy < 100 ? `, idle ${100 - busy} %` : ""}`,
      "lower",
    );
  };
  return [row("CPU an episode", sum), ...used.map(({ name, ms }) => row(`  ${name}`, ms))];
}

function waitRows(waits: RolloutWaits): Row[] {
  const ms = (name: string, value: number, meaning: string) =>
    measured(name, "ms", [value], meaning, "lower");
  return [
    ms("a rollout waits for a worker", waits.forWorker, `from job to attempt; mean of ${waits.rollouts}`),
    ms("an attempt", waits.attempt, "all its turns; the parts follow"),
    ms("  engine's queue", waits.engineQueue, "waits for a place in the engine's batch"),
    ms("  prefill", waits.enginePrefill, "the engine reads the prompts"),
    ms("  decode", waits.engineDecode, "the engine samples the answers"),
    ms("  call", waits.callOverhead, "the rest of the model's calls: both ends and the bus"),
    ms("  environment", waits.environment, "resets and moves"),
    ms("  agent", waits.agent, "the graph, the record, and waiting for its turn on the event loop"),
    ms("a score", waits.forScore, "from the attempt's end to its score"),
  ];
}

function episodesOf(steps: readonly Figures[]): number {
  return steps.reduce((sum, metrics) => sum + (metrics[MetricName.episodes] ?? 0), 0);
}

function pidsOf(stack: TestStack, busPid: number): Record<string, number> {
  const postmaster = readFileSync(path.join(stack.stateFolder, "postgres", "data", "postmaster.pid"), "utf8");
  return {
    ...Object.fromEntries(SERVICES.map((name) => [name, stack.pidOf(name)])),
    "nats-server": busPid,
    postgres: Number.parseInt(postmaster, 10),
  };
}

/** P2 */
async function readCounters(pids: Readonly<Record<string, number>>, monitorPort: number): Promise<Counters> {
  const response = await fetch(`http://${LOOPBACK}:${monitorPort}/varz`);
  const { in_msgs, out_msgs, in_bytes, out_bytes } = (await response.json()) as Record<
    "in_msgs" | "out_msgs" | "in_bytes" | "out_bytes",
    number
  >;
  return {
    atMs: performance.now(),
    cpuMs: cpuTimesOf(pids),
    messages: in_msgs + out_msgs,
    bytes: in_bytes + out_bytes,
  };
}
