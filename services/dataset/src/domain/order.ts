/**
 * The order in which a run takes the elements of a source: a pure function of (size, run seed, cursor).
 *
 * The order consists of passes without end. Every pass holds every element once, and a shuffled source gets a new
 * permutation in each pass.
 */

import { deriveSeed } from "@hone/core";
import { makePermutation } from "./permutation.ts";

/** A range of positions in the order. */
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
    // A source of one element has one order only, so no permutation is made for each of its passes.
    if (stretch.isShuffled && size > 1 && current !== pass) {
      pass = current;
      elementAt = makePermutation(size, deriveSeed(stretch.runSeed, "dataset", pass));
    }
    elements.push(elementAt(position % size));
  }
  return elements;
}
