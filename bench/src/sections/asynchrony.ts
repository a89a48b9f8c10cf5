/**
 * Compares synchronous training with asynchronous training, on the lake as it is and with tools of a long tail.
 *
 * Y1: all runs have the same work a step, one after the other on one stack; only steps after the warm-up steps count.
 * Y2: with tools, each move waits a time that is drawn from a log-normal distribution with a mean of 300 ms and a 99th percentile
 *     of 4.5 s, the longest tail that such a distribution has at this mean.
 * Y3: the limit is the rate on the lake as it is: no rollout waits for a tool there.
 */

import { lakeRun, runToEnd, startStack, type TestStack } from "@hone/integration-tests/support";
import { MetricName } from "@hone/telemetry";
import { measured, type Row, type Section } from "../report/report.ts";
import type { BenchSettings } from "../section.ts";

interface World {
  readonly name: string;
  readonly environment: Readonly<Record<string, unknown>>;
  /** Steps that are not counted and steps that are (Y1). */
  readonly steps: readonly [warm: number, counted: number];
}

const PLAIN: World = { name: "lake", environment: {}, steps: [6, 14] };
/** Y2 */
const TOOLS: World = {
  name: "tools",
  environment: { stepDelayMs: 300, stepDelaySigma: 2.326 },
  steps: [3, 8],
};
const STALENESS = [0, 1, 2, 4];
const SHAPE = { tasksPerStep: 32, minibatches: 8, warmStartTasks: 300, evalTasks: 1 };
const QUICK_SHAPE = { tasksPerStep: 4, minibatches: 2, warmStartTasks: 32, evalTasks: 1 };
const RUN_DEADLINE_MS = 900_000;

/** What a run did in its counted steps. */
interface Rates {
  readonly episodesPerSecond: number;
  readonly staleness: number;
  readonly tooOld: number;
}

export async function measureAsynchrony(settings: BenchSettings): Promise<Section> {
  await using stack = await startStack();
  const rows: Row[] = [];
  for (const world of [PLAIN, TOOLS]) {
    let synchronous = Number.NaN;
    for (const maxStaleness of settings.isQuick ? STALENESS.slice(0, 2) : STALENESS) {
      settings.say(`asynchrony: ${world.name}, maxStaleness ${maxStaleness}`);
      const rates = await ratesOf(stack, world, maxStaleness, settings.isQuick);
      if (maxStaleness === 0) synchronous = rates.episodesPerSecond;
      rows.push(...rowsOf(world, maxStaleness, rates, synchronous));
    }
  }
  return {
    name: "async",
    title:
      "Episodes per second while rollouts of later steps are played, 256 episodes a step, all six services",
    rows,
  };
}

function rowsOf(
  { name }: World,
  maxStaleness: number,
  { episodesPerSecond, staleness, tooOld }: Rates,
  synchronous: number,
): Row[] {
  const ratio = (episodesPerSecond / synchronous).toFixed(2);
  const meaning =
    maxStaleness === 0
      ? "synchronous"
      : `${ratio} x synchronous; tokens ${staleness.toFixed(2)} versions old on average, ${tooOld} groups given up`;
  return [measured(`${name}, staleness ${maxStaleness}`, "episodes/s", [episodesPerSecond], meaning)];
}

async function ratesOf(
  stack: TestStack,
  { name, environment, steps: [warm, counted] }: World,
  maxStaleness: number,
  isQuick: boolean,
): Promise<Rates> {
  const steps = isQuick ? 4 : warm + counted;
  const warmSteps = isQuick ? 2 : warm;
  const run = await lakeRun({
    name: `${name}-${maxStaleness}`,
    steps,
    maxStaleness,
    environment,
    ...(isQuick ? QUICK_SHAPE : SHAPE),
  });
  const { steps: completed } = await runToEnd(stack, run, { deadlineMs: RUN_DEADLINE_MS });
  const figures = completed.filter(({ step }) => step > warmSteps).map(({ metrics }) => metrics); // Y1
  const stepMs = sum(figures.map((metrics) => metrics[MetricName.timeStepMs] ?? Number.NaN));
  const episodes = sum(figures.map((metrics) => metrics[MetricName.episodes] ?? 0));
  return {
    episodesPerSecond: (1_000 * episodes) / stepMs,
    staleness: sum(figures.map((metrics) => metrics[MetricName.stalenessMean] ?? 0)) / figures.length,
    tooOld: sum(figures.map((metrics) => metrics[MetricName.groupsTooOld] ?? 0)),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
