/**
 * The order in which a run takes its tasks.
 *
 * A mix takes tasks from each of its parts in proportion to the weights, and each part has an order of its own that
 * repeats. The positions of a mix are divided into cycles. In a cycle each part has a fixed number of places (by the
 * largest remainder method), and the places are shuffled differently in each cycle. So which part stands at a position,
 * and which of the part's tasks, is a function of the position alone, and a restarted run continues where it was.
 * A mix that is not shuffled, as in an evaluation, gives one part after the other, each task once.
 */

import { deriveSeed } from "@hone/core";
import { elementsOf, type Stretch } from "./order.ts";
import { makePermutation } from "./permutation.ts";
import type { Task, TaskSource } from "./task.ts";

/** Tasks by their position. */
export interface TaskOrder {
  /** Number of distinct tasks. */
  readonly size: number;
  /** The tasks of a range of positions, in order. @throws {SourceError} when one cannot be read. */
  take(stretch: Omit<Stretch, "size">): Promise<Task[]>;
}

/** A part of a mix. */
export interface MixPart {
  /** Above 0. */
  readonly weight: number;
  readonly order: TaskOrder;
}

/** The order of one source. */
export function plainOrder(source: TaskSource): TaskOrder {
  return {
    size: source.size,
    take: (stretch) => source.read(elementsOf({ ...stretch, size: source.size })),
  };
}

/** Places of a cycle. Shares are exact to a thousandth, and already a batch comes close to them. */
const CYCLE = 1_024;

/** The order of a mix of several sources, by weight. */
export function mixedOrder(parts: readonly MixPart[]): TaskOrder {
  const size = parts.reduce((sum, { order }) => sum + order.size, 0);
  const places = placesOf(parts.map(({ weight }) => weight));
  return {
    size,
    async take(stretch) {
      const drawn = stretch.isShuffled
        ? shuffledDraws(places, stretch)
        : unshuffledDraws(
            parts.map(({ order }) => order.size),
            stretch,
          );
      const queues = await Promise.all(
        parts.map(async ({ order }, part) => {
          const runSeed = deriveSeed(stretch.runSeed, "mix", part);
          const tasks: Task[] = [];
          for (const { cursor, count } of stretchesOf(drawn, part)) {
            tasks.push(...(await order.take({ ...stretch, runSeed, cursor, count })));
          }
          return tasks.values();
        }),
      );
      return drawn.map(({ part }) => queues[part]!.next().value!);
    },
  };
}

/** Which part stands at a position, and at which of the part's own positions. */
interface Draw {
  readonly part: number;
  readonly position: number;
}

/** The number of places of each part in a cycle: at least one each, CYCLE in total. */
function placesOf(weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const free = CYCLE - weights.length;
  const shares = weights.map((weight) => (weight / total) * free);
  const places = shares.map((share) => 1 + Math.floor(share));
  const rest = CYCLE - places.reduce((sum, count) => sum + count, 0);
  const byRemainder = shares
    .map((share, part) => ({ part, remainder: share % 1 }))
    .sort((a, b) => b.remainder - a.remainder || a.part - b.part);
  for (const { part } of byRemainder.slice(0, rest)) places[part]!++;
  return places;
}

function shuffledDraws(places: readonly number[], { runSeed, cursor, count }: Omit<Stretch, "size">): Draw[] {
  const owners = places.flatMap((number, part) => Array.from({ length: number }, () => part));
  const draws: Draw[] = [];
  const end = cursor + count;
  for (let cycle = Math.floor(cursor / CYCLE); cycle * CYCLE < end; cycle++) {
    const placeAt = makePermutation(CYCLE, deriveSeed(runSeed, "mix-cycle", cycle));
    const next = places.map((number) => cycle * number);
    for (let at = 0; at < CYCLE; at++) {
      const part = owners[placeAt(at)]!;
      const position = next[part]!++;
      const place = cycle * CYCLE + at;
      if (place >= cursor && place < end) draws.push({ part, position });
    }
  }
  return draws;
}

function unshuffledDraws(sizes: readonly number[], { cursor, count }: Omit<Stretch, "size">): Draw[] {
  const size = sizes.reduce((sum, each) => sum + each, 0);
  return Array.from({ length: count }, (_, index) => {
    let position = (cursor + index) % size;
    let part = 0;
    while (position >= sizes[part]!) position -= sizes[part++]!;
    return { part, position };
  });
}

/** The positions of one part, in order, as ranges of consecutive positions. */
function stretchesOf(draws: readonly Draw[], wanted: number): { cursor: number; count: number }[] {
  const stretches: { cursor: number; count: number }[] = [];
  for (const { part, position } of draws) {
    if (part !== wanted) continue;
    const last = stretches.at(-1);
    if (last !== undefined && last.cursor + last.count === position) last.count++;
    else stretches.push({ cursor: position, count: 1 });
  }
  return stretches;
}
