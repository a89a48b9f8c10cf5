/** The order of a run's new tokens: that of its sequences. */

import type { RunItem } from "../policy-runner.ts";

/** The first new token of each item. @param places the place of each item among the sequences */
export function firstTokensOf(items: readonly Pick<RunItem, "count">[], places: readonly number[]): number[] {
  const counts = new Array<number>(items.length).fill(0);
  for (const [index, { count }] of items.entries()) counts[places[index]!] = count;
  let tokens = 0;
  const firstOfPlace = counts.map((count) => {
    tokens += count;
    return tokens - count;
  });
  return places.map((place) => firstOfPlace[place]!);
}
