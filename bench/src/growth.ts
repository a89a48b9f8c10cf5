/**
 * Decides whether a process grew while it did the same work for a long time.
 *
 * G1: the first part of the time is left out, while caches fill and heaps reach their size: a tenth by default.
 * G2: growth is the slope of the least-squares line through the rest, times its duration, so that one large garbage collection
 *     at the end neither hides growth nor looks like growth.
 */

const MEBIBYTE = 1_024 ** 2;

export interface GrowthLimits {
  /** Most growth of one process, as a share of its mean and in bytes, whichever allows more. */
  readonly maxGrowthShare: number;
  readonly maxGrowthBytes: number;
}

export const GROWTH_LIMITS: GrowthLimits = { maxGrowthShare: 0.1, maxGrowthBytes: 32 * MEBIBYTE };

export interface Growth {
  readonly meanBytes: number;
  /** G2 */
  readonly growthBytes: number;
}

/** The samples that count (G1). @param leftOut share of the samples that is left out. */
export function settled<Sample>(samples: readonly Sample[], leftOut = 0.1): readonly Sample[] {
  return samples.slice(Math.ceil(samples.length * leftOut));
}

/** Computes growth from memory in bytes at times in seconds, both in order; there must be at least two. */
export function growthOf(seconds: readonly number[], bytes: readonly number[]): Growth {
  const length = seconds.at(-1)! - seconds[0]!;
  return { meanBytes: mean(bytes), growthBytes: slope(seconds, bytes) * length };
}

/** Describes a growth that is too large; undefined if it is allowed. */
export function growthProblem(
  name: string,
  { meanBytes, growthBytes }: Growth,
  limits: GrowthLimits = GROWTH_LIMITS,
): string | undefined {
  const allowed = Math.max(limits.maxGrowthBytes, limits.maxGrowthShare * meanBytes);
  return growthBytes > allowed ? `${name} grew by ${mebibytes(growthBytes)}` : undefined;
}

export function mebibytes(bytes: number): string {
  return `${Math.round(bytes / MEBIBYTE)} MiB`;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Slope of the least-squares line through (x, y). */
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
