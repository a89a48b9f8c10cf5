/**
 * The order in which a run takes its tasks.
 *
 * A mix takes tasks from each of its parts in proportion to the weights, and each part has an order of its own that
 * repeats. The positions of a mix are divided into cycles. In a cycle each part has a fixed number of places (by the
 * largest remainder method), and the places are shuffled differently in each cycle. So which part stands at a position,
 * and which of the part's tasks, is a function of the position alone, and a restarted run continues where it was.
 * Where the parts say how many tasks of a step are theirs, a cycle is a step, and has exactly these.
 * A mix that is not shuffled, as in an evaluation, gives each task once, with each part's tasks spread evenly, so that the
 * first tasks are of all parts in proportion to their sizes.
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
  /** The part's places in a cycle, given for all parts or for none. */
  readonly groups?: number | undefined;
  readonly order: TaskOrder;
}

/** The order of one source. */
export function plainOrder(source: TaskSource): TaskOrder {
  return {
    size: source.size,
    take: (stretch) => source.read(elementsOf({ ...stretch, size: source.size })),
  };
}

/** The order of a named part of a mix: its tasks carry the name, also in their ids, as parts may share tasks. */
export function namedOrder(order: TaskOrder, part: string): TaskOrder {
  return {
    size: order.size,
    async take(stretch) {
      const tasks = await order.take(stretch);
      return tasks.map((task) => ({ ...task, id: `${part}/${task.id}`, part }));
    },
  };
}

/** Places of a cycle by weights. Shares are exact to a thousandth, and already a batch comes close to them. */
const CYCLE = 1_024;

/** The order of a mix of several sources, by weight. */
export function mixedOrder(parts: readonly MixPart[]): TaskOrder {
  const size = parts.reduce((sum, { order }) => sum + order.size, 0);
  const given = parts.flatMap(({ groups = [] }) => groups);
  const places = given.length > 0 ? given : placesOf(parts.map(({ weight }) => weight));
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

/** The number of places of each part in a cycle by its weight: at least one each, CYCLE in total. */
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
  const cycleSize = owners.length;
  const draws: Draw[] = [];
  const end = cursor + count;
  for (let cycle = Math.floor(cursor / cycleSize); cycle * cycleSize < end; cycle++) {
    const placeAt = makePermutation(cycleSize, deriveSeed(runSeed, "mix-cycle", cycle));
    const next = places.map((number) => cycle * number);
    for (let at = 0; at < cycleSize; at++) {
      const part = owners[placeAt(at)]!;
      const position = next[part]!++;
      const place = cycle * cycleSize + at;
      if (place >= cursor && place < end) draws.push({ part, position });
    }
  }
  return draws;
}

/** The k-th of a part's n tasks stands at (k + 1/2) / n of the whole; of parts at the same place the first comes first. */
function unshuffledDraws(sizes: readonly number[], { cursor, count }: Omit<Stretch, "size">): Draw[] {
  const size = sizes.reduce((sum, each) => sum + each, 0);
  const draws: Draw[] = [];
  let next = sizes.map(() => 0);
  // From the beginning of the pass, as an evaluation does.
  const begin = Math.floor(cursor / size) * size;
  for (let at = begin; at < cursor + count; at++) {
    if ((at - begin) % size === 0) next = sizes.map(() => 0);
    let part = -1;
    let place = Number.POSITIVE_INFINITY;
    for (const [index, taken] of next.entries()) {
      const own = (taken + 0.5) / sizes[index]!;
      if (taken < sizes[index]! && own < place) [part, place] = [index, own];
    }
    const position = next[part]!++;
    if (at >= cursor) draws.push({ part, position });
  }
  return draws;
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
