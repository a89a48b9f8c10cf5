/** How many positions of a context a run computes with, and its slot has room for. */

import { CONTEXT_BUCKET, KEY_BLOCK } from "@hone/nn";
import type { RunItem } from "./policy-runner.ts";

/** Sequences that decode get room for this many more rows at once, as all rows of a run move when one of its contexts grows. */
const GROWTH = 64;

/**
 * @param isExact whether sums have no order, so that a context needs no padding for equal bits.
 * @param isGrowing whether the next runs will add tokens to the context. @default if the run adds one
 */
export function contextRoom(
  { start, count, tokenIds }: Pick<RunItem, "start" | "count" | "tokenIds">,
  isExact: boolean,
  isGrowing = count === 1,
): number {
  const length = start + count;
  if (!isExact) return roundUp(length, CONTEXT_BUCKET);
  const grown = isGrowing ? Math.min(roundUp(length, GROWTH), tokenIds.length) : length;
  return roundUp(grown, KEY_BLOCK);
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}
