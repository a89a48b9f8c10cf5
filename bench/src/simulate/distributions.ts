/** Distributions of lengths and times. */

import { drawLogNormal, type Random } from "@hone/core";

/** The 99th percentile of the standard normal distribution. */
const Z99 = 2.326;

export type Draw = (random: Random) => number;

/** @param sigma standard deviation of the logarithm; 0 = always the mean. */
export function logNormal(mean: number, sigma: number): Draw {
  return (random) => drawLogNormal(mean, sigma, () => random.next());
}

/** The sigma of the log-normal distribution with a mean and a 99th percentile; undefined where there is none. */
export function sigmaOf(mean: number, p99: number): number | undefined {
  const spread = Z99 ** 2 - 2 * Math.log(p99 / mean);
  return p99 < mean || spread < 0 ? undefined : Z99 - Math.sqrt(spread);
}

/** Whole numbers from 1 to twice the mean less one, all equally likely. */
export function uniformTurns(mean: number): Draw {
  const most = Math.max(1, Math.round(2 * mean - 1));
  return (random) => 1 + random.nextInt(most);
}
