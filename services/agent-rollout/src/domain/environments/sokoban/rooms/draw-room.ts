/**
 * Draws rooms by the procedure of gym_sokoban and ROLL, from our own random numbers.
 *
 * D1: a random walk over the room lays floor in small patterns along its way.
 * D2: the player and the targets, with the boxes on them, are put on cells of the floor.
 * D3: reverse play pulls the boxes off. When it cannot get all of them off, a new room is drawn, four times.
 * D4: the player walks up to three cells at random, as it would stand beside a box otherwise.
 * D5: where that failed or the floor had no space, everything begins again with the seed of the next attempt.
 */

import { deriveSeed, Random, TerminalError } from "@hone/core";
import { type PulledRoom, playReverse, type SolvedRoom } from "./reverse-play.ts";
import { Ground, offsetsOf, type Room } from "./room.ts";

export interface RoomOptions {
  readonly rows: number;
  readonly columns: number;
  /** Number of boxes, and of targets. */
  readonly boxes: number;
  /** How many moves reverse play looks ahead. */
  readonly searchDepth: number;
}

/** Rooms of ROLL's sizes need fewer than ten attempts, so that what takes more than this has no solution or nearly none. */
const MAX_ATTEMPTS = 1_000;
/** States of reverse play in all attempts, about three seconds of work: large rooms whose boxes never all come off end here. */
const MAX_STATES = 10_000_000;
const TRIES_OF_AN_ATTEMPT = 4;
/** The walk takes this many steps for each row and each column. */
const WALK_STEPS = 1.7;
const TURN_PROBABILITY = 0.35;

/** Floor around each step of the walk: three rows of three cells. */
const PATTERNS = ["000111000", "010010010", "000110010", "000110110", "000011010"] as const;
const DIRECTIONS = [
  [1, 0],
  [0, 1],
  [-1, 0],
  [0, -1],
] as const;

const MAX_WANDERING = 3;
const CONTINUE_PROBABILITY = 0.5;

/**
 * Draws the room of a seed. It has a solution, and no box stands on a target.
 * @throws {TerminalError} when no attempt found a room, because the boxes have no space or the search is not deep enough.
 */
export function drawRoom(seed: number, options: RoomOptions): Room {
  let numStates = 0;
  for (let attempt = 0; attempt < MAX_ATTEMPTS && numStates < MAX_STATES; attempt++) {
    const random = new Random(deriveSeed(seed, "sokoban", "room", attempt));
    for (let round = 0; round < TRIES_OF_AN_ATTEMPT; round++) {
      const solved = furnish(random, options, layFloor(random, options));
      if (solved === undefined) break; // D5
      const played = playReverse(solved, options.searchDepth);
      if (played.best !== undefined) return wander(random, solved, played.best);
      numStates += played.numStates;
    }
  }
  const { rows, columns, boxes, searchDepth } = options;
  throw new TerminalError(
    "ROOM_NOT_FOUND",
    `No room of Sokoban with size [${rows}, ${columns}], boxes ${boxes} and searchDepth ${searchDepth} was found; give a larger size, fewer boxes or a greater searchDepth`,
  );
}

/** D1 */
function layFloor(random: Random, { rows, columns }: RoomOptions): Uint8Array {
  const ground = new Uint8Array(rows * columns).fill(Ground.wall);
  let direction = random.pick(DIRECTIONS);
  let row = 1 + random.nextInt(rows - 1);
  let column = 1 + random.nextInt(columns - 1);
  const numSteps = Math.floor(WALK_STEPS * (rows + columns));
  for (let step = 0; step < numSteps; step++) {
    if (random.next() < TURN_PROBABILITY) direction = random.pick(DIRECTIONS);
    row = clamp(row + direction[0], 1, rows - 2);
    column = clamp(column + direction[1], 1, columns - 2);
    const pattern = random.pick(PATTERNS);
    for (let place = 0; place < pattern.length; place++) {
      const cellRow = row - 1 + Math.floor(place / 3);
      const cellColumn = column - 1 + (place % 3);
      const isBorder =
        cellRow === 0 || cellRow === rows - 1 || cellColumn === 0 || cellColumn === columns - 1;
      if (pattern[place] === "1" && !isBorder) ground[cellRow * columns + cellColumn] = Ground.floor;
    }
  }
  return ground;
}

/** D2. @returns undefined when less than one cell would be left over */
function furnish(
  random: Random,
  { rows, columns, boxes }: RoomOptions,
  ground: Uint8Array,
): SolvedRoom | undefined {
  const free: number[] = [];
  for (const [cell, kind] of ground.entries()) if (kind === Ground.floor) free.push(cell);
  if (free.length <= boxes + 1) return undefined;
  const take = () => free.splice(random.nextInt(free.length), 1)[0]!;
  const player = take();
  for (let box = 0; box < boxes; box++) ground[take()] = Ground.target;
  return { rows, columns, ground, player };
}

/** D4. Moves away from the last cells only, and more often when the puzzle would be over after one push. */
function wander(random: Random, solved: SolvedRoom, { boxes, player, displacement }: PulledRoom): Room {
  const offsets = offsetsOf(solved);
  const taken = new Set([...boxes, player]);
  let cell = player;
  if (random.next() <= (displacement === 1 ? 0.8 : 0.5)) {
    for (let moves = 0; moves < MAX_WANDERING; moves++) {
      if (moves > 0 && random.next() > CONTINUE_PROBABILITY) break;
      const next = offsets
        .map((offset) => cell + offset)
        .filter((each) => solved.ground[each] !== Ground.wall && !taken.has(each));
      if (next.length === 0) break;
      cell = random.pick(next);
      taken.add(cell);
    }
  }
  return { ...solved, boxes, player: cell };
}

function clamp(value: number, lowest: number, highest: number): number {
  return Math.max(lowest, Math.min(highest, value));
}
