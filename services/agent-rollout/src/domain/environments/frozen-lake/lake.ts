/**
 * Lakes: square maps of frozen cells and holes, with a start and a goal.
 *
 * They follow ROLL's rules: start and goal are drawn at random and differ, every other cell is frozen with probability p, and
 * the map is drawn again until the goal can be reached.
 */

import { deriveSeed, Random } from "@hone/core";
import { moveReader } from "../grid-moves.ts";

/** A map; cells are numbered row by row. */
export interface Lake {
  /** Number of cells on a side. */
  readonly size: number;
  readonly start: number;
  readonly goal: number;
  /** Cells that end the episode without a reward. */
  readonly holes: ReadonlySet<number>;
}

/** Moves in the order of their numbers: an intended move slips to the one before it or the one after it. */
export const MOVES = ["Left", "Down", "Right", "Up"] as const;
export type Move = (typeof MOVES)[number];

const STEPS: Readonly<Record<Move, readonly [rows: number, columns: number]>> = {
  Left: [0, -1],
  Down: [1, 0],
  Right: [0, 1],
  Up: [-1, 0],
};

/** The move that an action names; undefined = it names none. */
export const moveNamed = moveReader(MOVES);

/** Draws the map of a seed, again and again until it is solvable. That ends soon, as a map without holes is always possible. */
export function drawLake(seed: number, size: number, safeProbability: number): Lake {
  const random = new Random(deriveSeed(seed, "frozen_lake", "map"));
  const cellCount = size * size;
  while (true) {
    const start = random.nextInt(cellCount);
    // Drawn from the other cells, so that it differs from the start.
    const goal = (start + 1 + random.nextInt(cellCount - 1)) % cellCount;
    const holes = new Set<number>();
    for (let cell = 0; cell < cellCount; cell++) {
      if (random.next() >= safeProbability && cell !== start && cell !== goal) holes.add(cell);
    }
    const lake = { size, start, goal, holes };
    if (isSolvable(lake)) return lake;
  }
}

/** The cell that a move leads to; at the border it is the same cell. */
export function cellAfter(lake: Lake, cell: number, move: Move): number {
  const [rows, columns] = STEPS[move];
  const row = Math.floor(cell / lake.size) + rows;
  const column = (cell % lake.size) + columns;
  const isOnBoard = row >= 0 && row < lake.size && column >= 0 && column < lake.size;
  return isOnBoard ? row * lake.size + column : cell;
}

/** Whether the goal can be reached over frozen cells. */
export function isSolvable(lake: Lake): boolean {
  return lake.start === lake.goal || moveTowardsGoal(lake, lake.start) !== undefined;
}

/** The first move of a shortest way to the goal over frozen cells; undefined = there is none, or the cell is the goal. */
export function moveTowardsGoal(lake: Lake, from: number): Move | undefined {
  /** The first move on the way to each cell that was reached. */
  const firstMoves = new Map<number, Move | undefined>([[from, undefined]]);
  // A map is iterated in the order of insertion, including cells that are added on the way: a breadth-first search.
  for (const [cell, first] of firstMoves) {
    if (cell === lake.goal) return first;
    for (const move of MOVES) {
      const next = cellAfter(lake, cell, move);
      if (!lake.holes.has(next) && !firstMoves.has(next)) firstMoves.set(next, first ?? move);
    }
  }
  return undefined;
}
