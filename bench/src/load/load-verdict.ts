/**
 * Judges a load: it must be reached and held, and all processes must stay small and not grow.
 *
 * V1: time begins when the load is reached. Its first third (ten minutes of half an hour) does not count for growth: rollouts
 *     that began together spread over their turns, and the database fills its shared memory.
 * V2: a peak is the largest resident set that the kernel recorded for the process, including its start.
 */

import {
  GROWTH_LIMITS,
  type Growth,
  type GrowthLimits,
  growthOf,
  growthProblem,
  mebibytes,
  settled,
} from "../growth.ts";
import type { LoadSample } from "./load-sample.ts";

export interface LoadLimits extends GrowthLimits {
  /** Most memory of one process that is allowed, and the size that it should stay below. */
  readonly maxBytes: number;
  readonly aimBytes: number;
  /** Share of the requested rollouts that counts as the load, and share of the samples that must have it. */
  readonly reachedShare: number;
  readonly heldShare: number;
}

const MEBIBYTE = 1_024 ** 2;

export const LOAD_LIMITS: LoadLimits = {
  ...GROWTH_LIMITS,
  maxBytes: 1_024 * MEBIBYTE,
  aimBytes: 512 * MEBIBYTE,
  reachedShare: 0.95,
  heldShare: 0.9,
};

/** V1 */
const SETTLING_SHARE = 1 / 3;

export interface ProcessVerdict extends Growth {
  readonly name: string;
  /** V2 */
  readonly peakBytes: number;
  /** Average number of cores used. */
  readonly cores: number;
}

export interface LoadVerdict {
  readonly processes: readonly ProcessVerdict[];
  readonly peakInFlight: number;
  /** Share of the samples with the load, since it was reached. */
  readonly heldShare: number;
  readonly episodesPerSecond: number;
  /** Seconds that count for growth. */
  readonly settledSeconds: number;
  /** Processes that are larger than they should be, but within the limit. */
  readonly aboveAim: readonly string[];
  /** One sentence for each requirement that was not met. */
  readonly problems: readonly string[];
}

/** @param rollouts number of rollouts that should be open at once. */
export function judgeLoad(
  samples: readonly LoadSample[],
  rollouts: number,
  limits: LoadLimits = LOAD_LIMITS,
): LoadVerdict {
  const isLoaded = ({ inFlight }: LoadSample) => inFlight >= limits.reachedShare * rollouts;
  const reachedAt = samples.findIndex(isLoaded);
  const peakInFlight = Math.max(0, ...samples.map(({ inFlight }) => inFlight));
  const loaded = reachedAt < 0 ? [] : samples.slice(reachedAt);
  const counted = settled(loaded, SETTLING_SHARE); // V1
  const [first, last] = [counted[0], counted.at(-1)];
  if (first === undefined || last === undefined || first === last) {
    const problem = `the load was not reached for long enough: ${peakInFlight} of ${rollouts} rollouts were in flight`;
    const nothing = { processes: [], heldShare: 0, episodesPerSecond: 0, settledSeconds: 0, aboveAim: [] };
    return { ...nothing, peakInFlight, problems: [problem] };
  }
  const heldShare = loaded.filter(isLoaded).length / loaded.length;
  const seconds = last.seconds - first.seconds;
  const processes = Object.keys(first.processes).map((name): ProcessVerdict => {
    const memory = counted.map((sample) => sample.processes[name]?.memoryBytes ?? 0);
    const cpuMs = (last.processes[name]?.cpuMs ?? 0) - (first.processes[name]?.cpuMs ?? 0);
    return {
      name,
      peakBytes: Math.max(...samples.map((sample) => sample.processes[name]?.peakBytes ?? 0)),
      ...growthOf(
        counted.map((sample) => sample.seconds),
        memory,
      ),
      cores: cpuMs / 1_000 / seconds,
    };
  });
  const problems = [
    ...(heldShare < limits.heldShare
      ? [`the load was held in ${Math.round(heldShare * 100)} % of the samples`]
      : []),
    ...processes.flatMap((process) => problemsOf(process, limits)),
    ...restarts(samples),
  ];
  const episodesPerSecond = (last.episodes - first.episodes) / seconds;
  const aboveAim = processes
    .filter(({ peakBytes }) => peakBytes > limits.aimBytes && peakBytes <= limits.maxBytes)
    .map(({ name }) => name);
  return {
    processes,
    peakInFlight,
    heldShare,
    episodesPerSecond,
    settledSeconds: seconds,
    aboveAim,
    problems,
  };
}

function problemsOf(process: ProcessVerdict, limits: LoadLimits): string[] {
  const { name, peakBytes } = process;
  const growth = growthProblem(name, process, limits);
  return [
    ...(peakBytes > limits.maxBytes ? [`${name} took ${mebibytes(peakBytes)}`] : []),
    ...(growth === undefined ? [] : [growth]),
  ];
}

function restarts(samples: readonly LoadSample[]): string[] {
  return Object.keys(samples[0]?.processes ?? {}).flatMap((name) => {
    const count = new Set(samples.map((sample) => sample.processes[name]?.pid)).size - 1;
    return count > 0 ? [`${name} was restarted ${count} times`] : [];
  });
}
