/**
 * Whether a load was borne: reached, held, by processes that stay small and do not grow.
 *
 * V1: the first tenth of the time after the load is reached is left out: caches fill and heaps find their size.
 * V2: growth is the slope of the least-squares line through the memory of the rest, times its length: one large
 *     collection at the end neither hides growth nor makes it up.
 */

import type { LoadSample } from "./load-sample.ts";

export interface LoadLimits {
  /** Most memory of one process. */
  readonly maxBytes: number;
  /** Most growth (V2) of one process, as a share of its mean and in bytes, whichever allows more. */
  readonly maxGrowthShare: number;
  readonly maxGrowthBytes: number;
  /** Of the rollouts asked for, how many count as the load, and in which share of the samples. */
  readonly reachedShare: number;
  readonly heldShare: number;
}

const MEBIBYTE = 1_024 ** 2;

export const LOAD_LIMITS: LoadLimits = {
  maxBytes: 1_024 * MEBIBYTE,
  maxGrowthShare: 0.1,
  maxGrowthBytes: 32 * MEBIBYTE,
  reachedShare: 0.95,
  heldShare: 0.9,
};

export interface ProcessVerdict {
  readonly name: string;
  readonly peakBytes: number;
  readonly meanBytes: number;
  /** V2 */
  readonly growthBytes: number;
  /** Cores used, on average. */
  readonly cores: number;
}

export interface LoadVerdict {
  readonly processes: readonly ProcessVerdict[];
  readonly peakInFlight: number;
  /** Share of the samples, after the load was reached, with the load. */
  readonly heldShare: number;
  readonly episodesPerSecond: number;
  /** What was not borne, one sentence each; empty = all was. */
  readonly problems: readonly string[];
}

/** @param rollouts how many were to be open at once. */
export function judgeLoad(
  samples: readonly LoadSample[],
  rollouts: number,
  limits: LoadLimits = LOAD_LIMITS,
): LoadVerdict {
  const isLoaded = ({ inFlight }: LoadSample) => inFlight >= limits.reachedShare * rollouts;
  const reachedAt = samples.findIndex(isLoaded);
  const peakInFlight = Math.max(0, ...samples.map(({ inFlight }) => inFlight));
  const loaded = reachedAt < 0 ? [] : samples.slice(reachedAt);
  const settled = loaded.slice(Math.ceil(loaded.length / 10)); // V1
  const [first, last] = [settled[0], settled.at(-1)];
  if (first === undefined || last === undefined || first === last) {
    const problem = `the load was not reached for long enough: ${peakInFlight} of ${rollouts} rollouts were in flight`;
    return { processes: [], peakInFlight, heldShare: 0, episodesPerSecond: 0, problems: [problem] };
  }
  const heldShare = loaded.filter(isLoaded).length / loaded.length;
  const seconds = last.seconds - first.seconds;
  const processes = Object.keys(first.processes).map((name): ProcessVerdict => {
    const memory = settled.map((sample) => sample.processes[name]?.memoryBytes ?? 0);
    const cpuMs = (last.processes[name]?.cpuMs ?? 0) - (first.processes[name]?.cpuMs ?? 0);
    return {
      name,
      peakBytes: Math.max(...samples.map((sample) => sample.processes[name]?.memoryBytes ?? 0)),
      meanBytes: mean(memory),
      growthBytes:
        slope(
          settled.map((sample) => sample.seconds),
          memory,
        ) * seconds,
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
  return { processes, peakInFlight, heldShare, episodesPerSecond, problems };
}

function problemsOf(
  { name, peakBytes, meanBytes, growthBytes }: ProcessVerdict,
  limits: LoadLimits,
): string[] {
  const allowed = Math.max(limits.maxGrowthBytes, limits.maxGrowthShare * meanBytes);
  return [
    ...(peakBytes > limits.maxBytes ? [`${name} took ${mebibytes(peakBytes)}`] : []),
    ...(growthBytes > allowed ? [`${name} grew by ${mebibytes(growthBytes)}`] : []),
  ];
}

function restarts(samples: readonly LoadSample[]): string[] {
  return Object.keys(samples[0]?.processes ?? {}).flatMap((name) => {
    const count = new Set(samples.map((sample) => sample.processes[name]?.pid)).size - 1;
    return count > 0 ? [`${name} was started again ${count} times`] : [];
  });
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Of the least-squares line through (x, y). */
function slope(x: readonly number[], y: readonly number[]): number {
  const [meanX, meanY] = [mean(x), mean(y)];
  let covariance = 0;
  let variance = 0;
  for (const [i, each] of x.entries()) {
    covariance += (each - meanX) * (y[i]! - meanY);
    variance += (each - meanX) ** 2;
  }
  return variance === 0 ? 0 : covariance / variance;
}

export function mebibytes(bytes: number): string {
  return `${Math.round(bytes / MEBIBYTE)} MiB`;
}
