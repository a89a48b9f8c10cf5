/**
 * The order in which a run meets the elements of a source: a pure function of (size, run seed, cursor).
 *
 * The order goes round for ever. A pass is once round; a shuffled source gets a new permutation with each pass, and
 * every pass holds every element once.
 */

import { deriveSeed } from "@hone/core";
import { makePermutation } from "./permutation.ts";

/** Which stretch of the order. */
export interface Stretch {
  /** Number of distinct elements of the source, at least 1. */
  readonly size: number;
  readonly runSeed: number;
  /** Position of the first element, from 0. */
  readonly cursor: number;
  readonly count: number;
  /** false = the source's own order. */
  readonly isShuffled: boolean;
}

/** The elements (0..size-1) at positions cursor..cursor+count-1. */
export function elementsOf(stretch: Stretch): number[] {
  const { size, cursor, count } = stretch;
  const elements: number[] = [];
  let pass = -1;
  let elementAt = (position: number): number => position;
  for (let position = cursor; position < cursor + count; position++) {
    const current = Math.floor(position / size);
    // One element has one order; a batch of many passes over it would make a permutation for each.
    if (stretch.isShuffled && size > 1 && current !== pass) {
      pass = current;
      elementAt = makePermutation(size, deriveSeed(stretch.runSeed, "dataset", pass));
    }
    elements.push(elementAt(position % size));
  }
  return elements;
}
