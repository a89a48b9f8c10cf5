/** Simulates a run that was measured on one machine, from what was measured of its parts. */

import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { type Draw, logNormal } from "./distributions.ts";
import { type Simulation, simulate } from "./pipeline.ts";

/** The parts of a run that were measured. */
export interface MeasuredParts {
  readonly groupsPerStep: number;
  readonly groupSize: number;
  /** Turns of rollouts, as they were played. */
  readonly turnCounts: readonly number[];
  /** Time that the machine takes for a turn while it plays many rollouts at once. */
  readonly turnMs: number;
  /** Time of a step's training and commit. */
  readonly trainMs: number;
  /** Time of a turn's tool: mean, and standard deviation of its logarithm. */
  readonly tool: { readonly meanMs: number; readonly sigma: number };
  readonly deadlineMs: number;
}

/** With heavy tails one simulation of a few steps says little. */
const SIMULATIONS = 40;
/** Both cores of the machine play rollouts, and both train. */
const SHARE_WHILE_TRAINING = 0.5;

/** @returns episodes per second: those of the mean time that such a run takes. */
export function simulateMeasured(
  { turnCounts, turnMs, trainMs, tool, ...shape }: MeasuredParts,
  maxStaleness: number,
  { warmSteps, steps }: Omit<Simulation, "seed">,
): number {
  const turns: Draw = (random) => random.pick(turnCounts);
  const workload = { ...shape, turns, tokens: () => 1, toolMs: logNormal(tool.meanMs, tool.sigma) };
  const cluster = {
    replicas: 1,
    engine: { baseMs: 0, perSequenceMs: turnMs },
    trainMs,
    publishMs: 0,
    shareWhileTraining: SHARE_WHILE_TRAINING,
  };
  let secondsPerEpisode = 0;
  for (let seed = 1; seed <= SIMULATIONS; seed++) {
    const found = simulate(workload, cluster, { maxStaleness }, { warmSteps, steps, seed });
    secondsPerEpisode += 1 / found.episodesPerSecond / SIMULATIONS;
  }
  return 1 / secondsPerEpisode;
}

/** The turns of every rollout that a run kept (docs/replay.md). */
export async function keptTurnCounts(stateFolder: string, runId: string): Promise<number[]> {
  const folder = path.join(stateFolder, "runs", runId, "rollouts");
  const steps = await Promise.all(
    (await readdir(folder)).map(async (name) => {
      const bytes = await readFile(path.join(folder, name, "step.json.gz"));
      const { groups } = JSON.parse((await promisify(gunzip)(bytes)).toString()) as {
        groups: { rollouts: { turnCount: number }[] }[];
      };
      return groups.flatMap(({ rollouts }) => rollouts.map(({ turnCount }) => turnCount));
    }),
  );
  return steps.flat();
}
