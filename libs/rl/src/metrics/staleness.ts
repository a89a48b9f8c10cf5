/** How old the tokens of a step are. */

import type { Rollout } from "../rollout.ts";
import { type MetricSet, Reduction } from "./reduction.ts";

/**
 * Adds how many versions older than the trained policy the sampled tokens are:
 *   staleness/mean, staleness/max   over the tokens
 *   staleness/<n>                   number of tokens that are n versions older, for every n that occurs
 * @param version the version that the step trains.
 */
export function addStaleness(metrics: MetricSet, version: number, rollouts: readonly Rollout[]): void {
  const counts = new Map<number, number>();
  for (const { samples } of rollouts) {
    for (const span of samples.flatMap(({ versions }) => versions)) {
      const age = version - span.version;
      counts.set(age, (counts.get(age) ?? 0) + span.tokenCount);
    }
  }
  const ages = [...counts].filter(([, count]) => count > 0).sort(([a], [b]) => a - b);
  const total = ages.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return;
  metrics.add(
    "staleness/mean",
    Reduction.last,
    ages.reduce((sum, [age, count]) => sum + age * count, 0) / total,
  );
  metrics.add("staleness/max", Reduction.last, ages.at(-1)![0]);
  for (const [age, count] of ages) metrics.add(`staleness/${age}`, Reduction.sum, count);
}
