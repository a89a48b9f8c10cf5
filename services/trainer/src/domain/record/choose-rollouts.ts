/**
 * Which rollouts of a step are recorded token by token: all, where their tokens fit; else those that come first in an order which
 * the run's seed and their slots set, each that still fits. So the choice never depends on arrival, kills or rewards.
 */

import { deriveSeed, slotKey } from "@hone/core";
import { type CreditedRollout, rolloutTokenCount } from "@hone/rl";

/**
 * @param seed of the run
 * @param limit of tokens, each counted once for each epoch
 */
export function chooseRollouts(
  rollouts: readonly CreditedRollout[],
  { seed, limit, epochs }: { readonly seed: number; readonly limit: number; readonly epochs: number },
): ReadonlySet<CreditedRollout> {
  const sized = rollouts.map((credited) => ({
    credited,
    count: epochs * rolloutTokenCount(credited.rollout),
  }));
  const total = sized.reduce((sum, { count }) => sum + count, 0);
  if (total <= limit) return new Set(rollouts);
  const ordered = sized
    .map((each) => ({ ...each, rank: deriveSeed(seed, "token-record", slotKey(each.credited.rollout.slot)) }))
    .sort((a, b) => a.rank - b.rank);
  let left = limit;
  const chosen = new Set<CreditedRollout>();
  for (const { credited, count } of ordered) {
    if (count > left) continue;
    left -= count;
    chosen.add(credited);
  }
  return chosen;
}
