/** Simulates a run that was measured on one machine, from what was measured of its parts. */

import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { type Draw, logNormal } from "./distributions.ts";
import { type Simulation, simulate } from "./pipeline.ts";

/**
 * What a turn takes on a machine that plays b rollouts at once: `baseMs + b * perRolloutMs`. Messages, and the steps of the engine,
 * cost the machine more for each turn the fewer turns share them.
 */
export interface TurnTimes {
  readonly baseMs: number;
  readonly perRolloutMs: number;
}

/** What a synchronous run took for its rollouts: means of a step. */
export interface PlayedStep {
  readonly rolloutMs: number;
  readonly turns: number;
  /** Turns of the longest rollout. */
  readonly longest: number;
}

/** The parts of a run that were measured. */
export interface MeasuredParts {
  readonly groupsPerStep: number;
  readonly groupSize: number;
  /** Turns of rollouts, as they were played. */
  readonly turnCounts: readonly number[];
  readonly turn: TurnTimes;
  /** Time of a step's training and commit. */
  readonly trainMs: number;
  /** Time of a turn's tool: mean, and standard deviation of its logarithm. */
  readonly tool: { readonly meanMs: number; readonly sigma: number };
  readonly deadlineMs: number;
}

/** Places of the process of agent-rollout, with its default. */
const CONCURRENCY = Number(process.env.HONE_ROLLOUT_CONCURRENCY ?? 512);
/** Of the simulated runs, so many are below the range that is told, and as many above it. */
const RANGE_SHARE = 0.05;
/** With heavy tails one simulation of a few steps says little. */
const SIMULATIONS = 40;
/** Both cores of the machine play rollouts, and both train: while both happen, each has half. */
const SHARE = 0.5;

/** Episodes per second of simulated runs. */
export interface SimulatedRate {
  /** That of the mean time that such a run takes. */
  readonly mean: number;
  /** Nine in ten of such runs are between these, as a few steps of a heavy tail differ by themselves. */
  readonly low: number;
  readonly high: number;
}

export function simulateMeasured(
  { turnCounts, turn, trainMs, tool, ...shape }: MeasuredParts,
  maxStaleness: number,
  { warmSteps, steps }: Omit<Simulation, "seed">,
): SimulatedRate {
  const turns: Draw = (random) => random.pick(turnCounts);
  const toolMs = logNormal(tool.meanMs, tool.sigma);
  const workload = { ...shape, turns, tokens: () => 1, toolMs, concurrency: CONCURRENCY };
  const cluster = {
    replicas: 1,
    engine: { baseMs: turn.baseMs, perSequenceMs: turn.perRolloutMs },
    trainMs,
    publishMs: 0,
    shareWhileTraining: SHARE,
    trainShareWhilePlaying: SHARE,
  };
  const rates = Array.from(
    { length: SIMULATIONS },
    (_, i) =>
      simulate(workload, cluster, { maxStaleness }, { warmSteps, steps, seed: i + 1 }).episodesPerSecond,
  ).sort((a, b) => a - b);
  const outside = Math.floor(RANGE_SHARE * SIMULATIONS);
  return {
    mean: SIMULATIONS / rates.reduce((seconds, rate) => seconds + 1 / rate, 0),
    low: rates[outside]!,
    high: rates[SIMULATIONS - 1 - outside]!,
  };
}

/**
 * The times of a turn, from two synchronous runs whose steps differ in size. While the machine is never idle, a step takes
 * the longest rollout's turns times the base, and every turn's share. Times that fit no such machine give no base.
 */
export function turnTimesOf(few: PlayedStep, many: PlayedStep): TurnTimes {
  const perRolloutMs =
    (many.rolloutMs * few.longest - few.rolloutMs * many.longest) /
    (many.turns * few.longest - few.turns * many.longest);
  const baseMs = (few.rolloutMs - few.turns * perRolloutMs) / few.longest;
  const fits = perRolloutMs > 0 && baseMs >= 0;
  return fits ? { baseMs, perRolloutMs } : { baseMs: 0, perRolloutMs: many.rolloutMs / many.turns };
}

/** The turns of every rollout that a run kept (docs/replay.md), by step. */
export async function keptTurnCounts(stateFolder: string, runId: string): Promise<number[][]> {
  const folder = path.join(stateFolder, "runs", runId, "rollouts");
  return Promise.all(
    (await readdir(folder)).map(async (name) => {
      const bytes = await readFile(path.join(folder, name, "step.json.gz"));
      const { groups } = JSON.parse((await promisify(gunzip)(bytes)).toString()) as {
        groups: { rollouts: { turnCount: number }[] }[];
      };
      return groups.flatMap(({ rollouts }) => rollouts.map(({ turnCount }) => turnCount));
    }),
  );
}
