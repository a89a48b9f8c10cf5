/**
 * Compares synchronous training with asynchronous training, on the lake as it is, with tools, and with tools of a long tail.
 *
 * Y1: all runs have the same work a step, one after the other on one stack; only steps after the warm-up steps count.
 * Y2: with tools, each move waits a time that is drawn from a log-normal distribution with a mean of 300 ms and a 99th percentile
 *     of 0.85 s, and with a long tail one of 4.5 s, the longest tail that such a distribution has at this mean.
 * Y3: the limit is the rate on the lake as it is: no rollout waits for a tool there.
 * Y4: beside each rate with tools stands what the simulation says (npm run simulate), of the turns that the run played and the groups
 *     that it could learn from, and of times measured without it: of turns among few on the lake as it is, of turns among many whose
 *     tools take so little that the machine is never idle, and of training in the synchronous run. Runs with a long tail differ by
 *     themselves; how good the simulation is shows without it.
 */

import { lakeRun, runToEnd, startStack, type TestStack } from "@hone/integration-tests/support";
import { MetricName } from "@hone/telemetry";
import { measured, type Row, type Section } from "../report/report.ts";
import type { BenchSettings } from "../section.ts";
import {
  keptTurnCounts,
  type PlayedStep,
  type SimulatedRate,
  simulateMeasured,
  type TurnTimes,
  turnTimesOf,
} from "../simulate/like-measured.ts";

interface World {
  readonly name: string;
  /** Absent = no turn waits for a tool. */
  readonly tool?: { readonly meanMs: number; readonly sigma: number };
  /** Steps that are not counted and steps that are (Y1). */
  readonly steps: readonly [warm: number, counted: number];
}

const PLAIN: World = { name: "lake", steps: [6, 14] };
/** Y2 */
const EVEN_TOOLS: World = { name: "even-tools", tool: { meanMs: 300, sigma: 0.5 }, steps: [3, 8] };
const TOOLS: World = { name: "tools", tool: { meanMs: 300, sigma: 2.326 }, steps: [3, 8] };
/** Y4: so few rollouts at once that hardly a turn shares its messages, or the engine's steps, with another one. */
const FEW: World = { name: "few", steps: [4, 12] };
/**
 * Y4: turns whose tools answer one by one cost the machine more than turns that end together, as fewer share their messages and the
 * steps of the engine. Tools this short hardly lengthen a step of many rollouts.
 */
const SHORT_TOOLS: World = { name: "short-tools", tool: { meanMs: 10, sigma: 0.5 }, steps: [3, 8] };
const FEW_SHAPE = { tasksPerStep: 1, minibatches: 1, warmStartTasks: 32, evalTasks: 1 };
const STALENESS = [0, 1, 2, 4];
const SHAPE = { tasksPerStep: 32, minibatches: 8, warmStartTasks: 300, evalTasks: 1 };
const QUICK_SHAPE = { tasksPerStep: 4, minibatches: 2, warmStartTasks: 32, evalTasks: 1 };
/** Rollouts of a group, and the time limit of an attempt, in test/support/lake.yaml. */
const GROUP_SIZE = 8;
const DEADLINE_MS = 60_000;
const QUICK_STEPS = { warmSteps: 2, steps: 2 };
const RUN_DEADLINE_MS = 900_000;

/** What a run did in its counted steps. */
interface Rates {
  readonly runId: string;
  readonly episodesPerSecond: number;
  /** Means of a step, in milliseconds. */
  readonly rolloutMs: number;
  readonly trainMs: number;
  readonly commitMs: number;
  /** Groups that training learns from: those whose rewards differ. */
  readonly usedGroups: number;
  /** All turns of a step, on average. */
  readonly turns: number;
  readonly staleness: number;
  readonly tooOld: number;
}

export async function measureAsynchrony(settings: BenchSettings): Promise<Section> {
  await using stack = await startStack();
  const rows: Row[] = [];
  for (const world of [PLAIN, EVEN_TOOLS, TOOLS]) {
    let synchronous: Rates | undefined;
    for (const maxStaleness of settings.isQuick ? STALENESS.slice(0, 2) : STALENESS) {
      settings.say(`asynchrony: ${world.name}, maxStaleness ${maxStaleness}`);
      const turn = world.tool && (await turnTimes(stack, settings.isQuick));
      const rates = await ratesOf(stack, world, maxStaleness, settings.isQuick);
      synchronous ??= rates;
      const simulated =
        turn && (await simulatedRate(stack, world, { turn, synchronous, rates }, maxStaleness, settings));
      rows.push(rowOf(world, maxStaleness, rates, { synchronous, simulated }));
    }
  }
  return {
    name: "async",
    title:
      "Episodes per second while rollouts of later steps are played, 256 episodes a step, all six services",
    rows,
  };
}

function rowOf(
  { name }: World,
  maxStaleness: number,
  { episodesPerSecond, staleness, tooOld }: Rates,
  { synchronous, simulated }: { readonly synchronous: Rates; readonly simulated: SimulatedRate | undefined },
): Row {
  const ratio = (episodesPerSecond / synchronous.episodesPerSecond).toFixed(2);
  const said = [
    maxStaleness === 0
      ? "synchronous"
      : `${ratio} x synchronous; tokens ${staleness.toFixed(2)} versions old on average, ${tooOld} groups given up`,
    ...(simulated === undefined
      ? []
      : [
          `simulated ${simulated.mean.toFixed(1)} (${simulated.low.toFixed(1)} to ${simulated.high.toFixed(1)}), ${(simulated.mean / episodesPerSecond).toFixed(2)} of it`,
        ]),
  ];
  const row = `${name}, staleness ${maxStaleness}`;
  return measured(row, "episodes/s", [episodesPerSecond], said.join("; "));
}

/** Y4 */
async function simulatedRate(
  { stateFolder }: TestStack,
  { tool, steps: [warmSteps, steps] }: World,
  measured: { readonly turn: TurnTimes; readonly synchronous: Rates; readonly rates: Rates },
  maxStaleness: number,
  { isQuick }: BenchSettings,
): Promise<SimulatedRate> {
  const { turn, synchronous, rates } = measured;
  const groupMs = synchronous.trainMs / Math.max(1, synchronous.usedGroups);
  const parts = {
    groupsPerStep: (isQuick ? QUICK_SHAPE : SHAPE).tasksPerStep,
    groupSize: GROUP_SIZE,
    turnCounts: (await keptTurnCounts(stateFolder, rates.runId)).flat(),
    turn,
    trainMs: groupMs * rates.usedGroups + synchronous.commitMs,
    tool: tool!,
    deadlineMs: DEADLINE_MS,
  };
  return simulateMeasured(parts, maxStaleness, isQuick ? QUICK_STEPS : { warmSteps, steps });
}

/** Y4: measured again before each run, as the machine is not always equally fast. */
async function turnTimes(stack: TestStack, isQuick: boolean): Promise<TurnTimes> {
  const few = await ratesOf(stack, FEW, 0, isQuick, FEW_SHAPE);
  const many = await ratesOf(stack, SHORT_TOOLS, 0, isQuick);
  return turnTimesOf(await playedStep(stack, few), await playedStep(stack, many));
}

async function playedStep(
  { stateFolder }: TestStack,
  { runId, rolloutMs, turns }: Rates,
): Promise<PlayedStep> {
  const steps = await keptTurnCounts(stateFolder, runId);
  return { rolloutMs, turns, longest: sum(steps.map((each) => Math.max(...each))) / steps.length };
}

async function ratesOf(
  stack: TestStack,
  { name, tool, steps: [warm, counted] }: World,
  maxStaleness: number,
  isQuick: boolean,
  shape: typeof SHAPE = isQuick ? QUICK_SHAPE : SHAPE,
): Promise<Rates> {
  const { warmSteps, steps } = isQuick ? QUICK_STEPS : { warmSteps: warm, steps: counted };
  const run = await lakeRun({
    name: `${name}-${maxStaleness}`,
    steps: warmSteps + steps,
    maxStaleness,
    keepsRollouts: true,
    environment: tool === undefined ? {} : { stepDelayMs: tool.meanMs, stepDelaySigma: tool.sigma },
    ...shape,
  });
  const { runId, steps: completed } = await runToEnd(stack, run, { deadlineMs: RUN_DEADLINE_MS });
  const figures = completed.filter(({ step }) => step > warmSteps).map(({ metrics }) => metrics); // Y1
  const total = (metric: MetricName) => sum(figures.map((metrics) => metrics[metric] ?? 0));
  const episodes = total(MetricName.episodes);
  const turnsMean = total(MetricName.turnsMean) / figures.length;
  return {
    runId,
    episodesPerSecond: (1_000 * episodes) / total(MetricName.timeStepMs),
    rolloutMs: total(MetricName.timeRolloutMs) / figures.length,
    trainMs: total(MetricName.timeTrainMs) / figures.length,
    commitMs: total(MetricName.timeCommitMs) / figures.length,
    usedGroups: total(MetricName.groupsUsed) / figures.length,
    turns: (turnsMean * episodes) / figures.length,
    staleness: total(MetricName.stalenessMean) / figures.length,
    tooOld: total(MetricName.groupsTooOld),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
