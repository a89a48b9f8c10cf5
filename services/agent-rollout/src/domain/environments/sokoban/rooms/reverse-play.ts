/**
 * Reverse play: pulls boxes off their targets, so that pushing them back is a solution of the room.
 *
 * It is the search of gym_sokoban (https://github.com/mpSchrader/gym-sokoban), which ROLL uses: depth first, at each cell up, down,
 * left and right in this order, and a step away from a box pulls it along. The best state is the first with the highest
 * score: the distance of the boxes from their targets, times the number of times that another box than before was pulled. The
 * search does not visit a state twice, in which a box that was never pulled differs from one that came back.
 *
 * One position is changed and restored (no copies), and its key follows each change.
 */

import { Ground, offsetsOf, type Room, targetsOf } from "./room.ts";
import { StateSet } from "./state-set.ts";

/** States that a search visits at most, as in gym_sokoban. */
const MAX_STATES = 300_000;

/** A room without boxes: they begin on its targets. */
export type SolvedRoom = Omit<Room, "boxes">;

/** The state that was chosen. */
export interface PulledRoom {
  /** Cells of the boxes in the order of their targets. */
  readonly boxes: readonly number[];
  readonly player: number;
  /** Sum of the distances of the boxes from their targets, in rows and columns. */
  readonly displacement: number;
}

export interface ReversePlay {
  /** Undefined = no state has every box off the targets. A state in which the player hides a target does not count. */
  readonly best: PulledRoom | undefined;
  /** States that were visited, as a measure of the work. */
  readonly numStates: number;
}

/**
 * Searches for the room that is farthest from its solution.
 * @param searchDepth states are reached by at most this number of moves minus two, as gym_sokoban counts
 */
export function playReverse(room: SolvedRoom, searchDepth: number): ReversePlay {
  const search = new ReverseSearch(room);
  search.explore(searchDepth, 0, NO_BOX);
  return search;
}

const NO_BOX = -1;
/** Words of a key: the player's cell, which of up to 32 boxes were pulled, and from here on the cells that have boxes. */
const PLAYER_WORD = 0;
const PULLED_WORD = 1;
const BOX_WORDS = 2;

class ReverseSearch implements ReversePlay {
  readonly #ground: Uint8Array;
  readonly #columns: number;
  readonly #targets: readonly number[];
  readonly #offsets: readonly number[];
  /** Number of the box on each cell, or {@link NO_BOX}. */
  readonly #boxAt: Int8Array;
  /** Cell of each box. */
  readonly #boxes: Uint16Array;
  /** Number of each cell among those without walls, which keeps keys short. */
  readonly #bitOf: Uint16Array;
  readonly #key: Uint32Array;
  readonly #seen: StateSet;
  #player: number;
  /** Best score so far; a score of 0 is not worth keeping. */
  #bestScore = 0;
  best: PulledRoom | undefined;

  constructor(room: SolvedRoom) {
    this.#ground = room.ground;
    this.#columns = room.columns;
    this.#offsets = offsetsOf(room);
    this.#targets = targetsOf(room);
    this.#boxAt = new Int8Array(room.ground.length).fill(NO_BOX);
    this.#boxes = Uint16Array.from(this.#targets);
    this.#bitOf = new Uint16Array(room.ground.length);
    let numFloor = 0;
    for (const [cell, ground] of room.ground.entries()) {
      if (ground !== Ground.wall) this.#bitOf[cell] = numFloor++;
    }
    this.#key = new Uint32Array(BOX_WORDS + Math.ceil(numFloor / 32));
    this.#seen = new StateSet(this.#key.length);
    this.#player = room.player;
    this.#key[PLAYER_WORD] = room.player;
    for (const [box, cell] of this.#targets.entries()) {
      this.#boxAt[cell] = box;
      this.#flip(cell);
    }
  }

  get numStates(): number {
    return this.#seen.size;
  }

  /**
   * Visits this state and those behind it.
   * @param movesLeft counts down on the way from the root
   * @param changes how often another box than before was pulled
   * @param lastBox the box that was pulled last, or {@link NO_BOX}
   */
  explore(movesLeft: number, changes: number, lastBox: number): void {
    if (movesLeft <= 1 || this.#seen.size >= MAX_STATES || !this.#seen.add(this.#key)) return;
    this.#rate(changes);
    const from = this.#player;
    const pulledBefore = this.#key[PULLED_WORD]!;
    for (const offset of this.#offsets) {
      const to = from + offset;
      if (this.#ground[to] === Ground.wall || this.#boxAt[to] !== NO_BOX) continue;
      const behind = from - offset;
      const box = this.#boxAt[behind]!;
      this.#placePlayer(to);
      if (box === NO_BOX) {
        this.explore(movesLeft - 1, changes, lastBox);
      } else {
        this.#moveBox(box, behind, from);
        this.#key[PULLED_WORD] = pulledBefore | (1 << box);
        this.explore(movesLeft - 1, box === lastBox ? changes : changes + 1, box);
        this.#key[PULLED_WORD] = pulledBefore;
        this.#moveBox(box, from, behind);
      }
      this.#placePlayer(from);
    }
  }

  /** Keeps the state when it is the best so far. */
  #rate(changes: number): void {
    if (this.#ground[this.#player] === Ground.target) return;
    let displacement = 0;
    for (const [box, cell] of this.#boxes.entries()) {
      if (this.#ground[cell] === Ground.target) return;
      displacement += distance(cell, this.#targets[box]!, this.#columns);
    }
    if (changes * displacement <= this.#bestScore) return;
    this.#bestScore = changes * displacement;
    this.best = { boxes: [...this.#boxes], player: this.#player, displacement };
  }

  #placePlayer(cell: number): void {
    this.#player = cell;
    this.#key[PLAYER_WORD] = cell;
  }

  #moveBox(box: number, from: number, to: number): void {
    this.#boxAt[from] = NO_BOX;
    this.#boxAt[to] = box;
    this.#boxes[box] = to;
    this.#flip(from);
    this.#flip(to);
  }

  /** Notes in the key that a box came to a cell or left it. */
  #flip(cell: number): void {
    const bit = this.#bitOf[cell]!;
    this.#key[BOX_WORDS + (bit >>> 5)]! ^= 1 << (bit & 31);
  }
}

/** Rows and columns between two cells. */
function distance(a: number, b: number, columns: number): number {
  const rows = Math.floor(a / columns) - Math.floor(b / columns);
  return Math.abs(rows) + Math.abs((a % columns) - (b % columns));
}
