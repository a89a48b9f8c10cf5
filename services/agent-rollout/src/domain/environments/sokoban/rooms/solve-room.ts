/** Solves rooms of Sokoban by breadth-first search over the places of the player and the boxes. */

import { Ground, MOVES, type Move, offsetsOf, type Room } from "./room.ts";
import { StateSet } from "./state-set.ts";

/**
 * A shortest solution; of several ones that whose moves come first in the order of {@link MOVES}. It takes time and memory in
 * proportion to the number of states, which grows with the power of the number of boxes: meant for a few boxes.
 * @returns undefined when the room has no solution.
 */
export function solveRoom(room: Room): Move[] | undefined {
  const { ground } = room;
  const offsets = offsetsOf(room);
  // A state is the player's cell, and one bit for each cell with a box.
  const state = new Uint32Array(1 + Math.ceil(ground.length / 32));
  state[0] = room.player;
  for (const box of room.boxes) flip(state, box);
  const states = new StateSet(state.length);
  states.add(state);
  /** For each state the one before it and the move that led to it; none for the first. */
  const origins: { readonly before: number; readonly move: Move }[] = [{ before: -1, move: "Up" }];
  for (let index = 0; index < states.size; index++) {
    states.read(index, state);
    if (isSolved(state, ground)) return movesTo(index, origins);
    for (const [number, move] of MOVES.entries()) {
      states.read(index, state);
      if (push(state, ground, offsets[number]!) && states.add(state)) origins.push({ before: index, move });
    }
  }
  return undefined;
}

/** Moves the player and the box before it. @returns false when something stands in the way */
function push(state: Uint32Array, ground: Uint8Array, offset: number): boolean {
  const to = state[0]! + offset;
  if (ground[to] === Ground.wall) return false;
  if (hasBox(state, to)) {
    const behind = to + offset;
    if (ground[behind] === Ground.wall || hasBox(state, behind)) return false;
    flip(state, to);
    flip(state, behind);
  }
  state[0] = to;
  return true;
}

function isSolved(state: Uint32Array, ground: Uint8Array): boolean {
  return ground.every((kind, cell) => kind !== Ground.target || hasBox(state, cell));
}

function hasBox(state: Uint32Array, cell: number): boolean {
  return (state[1 + (cell >>> 5)]! & (1 << (cell & 31))) !== 0;
}

function flip(state: Uint32Array, cell: number): void {
  state[1 + (cell >>> 5)]! ^= 1 << (cell & 31);
}

function movesTo(last: number, origins: readonly { readonly before: number; readonly move: Move }[]): Move[] {
  const moves: Move[] = [];
  for (let index = last; index > 0; index = origins[index]!.before) moves.push(origins[index]!.move);
  return moves.reverse();
}
