/**
 * Floor plans: rooms on a grid, with passages and doors between neighbours, some of the doors locked.
 *
 * P1: the rooms form a tree that grows from the first room, where the player starts; further passages make ways round. The way
 *     of the tree into a room is a passage or has a door, which is called after the room.
 * P2: a locked door closes off its room and what grew from there. A further passage joins only rooms behind the same locked
 *     doors, so no way leads round a locked door.
 * P3: every room behind a locked door can be reached after those locked doors alone that come before it in `lockedRooms`.
 */

import type { Random } from "@hone/core";
import type { Exit } from "./house.ts";
import { DIRECTIONS, type Direction, oppositeOf, type RoomName } from "./lexicon.ts";

export interface FloorPlan {
  /** The first room is the start. */
  readonly rooms: readonly RoomName[];
  readonly exits: ReadonlyMap<RoomName, readonly Exit[]>;
  /** The doors with the rooms on both sides; the second room is the one that the door is called after. */
  readonly doors: ReadonlyMap<string, readonly [RoomName, RoomName]>;
  /** Doors that are open at first. */
  readonly openDoors: readonly string[];
  /** Rooms whose doors are locked, in an order in which they can be unlocked (P3). */
  readonly lockedRooms: readonly RoomName[];
  /** The rooms of `lockedRooms` whose doors have to be passed on the way to a room. */
  readonly locksBefore: ReadonlyMap<RoomName, readonly RoomName[]>;
}

const DOOR_SHARE = 0.6;
const OPEN_DOOR_SHARE = 0.5;
/** Share of the neighbours without a way between them that get one. */
const EXTRA_PASSAGE_SHARE = 0.3;

const STEPS: Readonly<Record<Direction, readonly [columns: number, rows: number]>> = {
  north: [0, -1],
  east: [1, 0],
  south: [0, 1],
  west: [-1, 0],
};

export function doorOf(room: RoomName): string {
  return `${room} door`;
}

/** @param rooms in the order in which they join the house. */
export function drawFloorPlan(random: Random, rooms: readonly RoomName[], numLocked: number): FloorPlan {
  const cells = new Map<string, RoomName>();
  const cellOf = new Map<RoomName, readonly [number, number]>();
  const exits = new Map<RoomName, Exit[]>();
  const parents = new Map<RoomName, readonly [parent: RoomName, direction: Direction]>();
  for (const [index, room] of rooms.entries()) {
    const [cell, parent] =
      index === 0
        ? [[0, 0] as const, undefined]
        : drawNeighbour(random, rooms.slice(0, index), cellOf, cells);
    cells.set(cell.join(), room);
    cellOf.set(room, cell);
    exits.set(room, []);
    if (parent !== undefined) parents.set(room, parent);
  }
  const lockedRooms = drawLocked(random, rooms, numLocked);
  const locksBefore = locksOf(rooms, parents, lockedRooms);
  const doors = new Map<string, readonly [RoomName, RoomName]>();
  const openDoors: string[] = [];
  for (const [room, [parent, direction]] of parents) {
    const isLocked = lockedRooms.includes(room);
    const hasDoor = isLocked || random.next() < DOOR_SHARE;
    if (hasDoor) doors.set(doorOf(room), [parent, room]);
    if (hasDoor && !isLocked && random.next() < OPEN_DOOR_SHARE) openDoors.push(doorOf(room));
    join(exits, parent, direction, room, hasDoor ? doorOf(room) : undefined);
  }
  for (const [room, [column, row]] of cellOf) {
    for (const direction of ["east", "south"] as const) {
      const [columns, rowsDown] = STEPS[direction];
      const other = cells.get([column + columns, row + rowsDown].join());
      if (other === undefined || exits.get(room)!.some(({ to }) => to === other)) continue;
      const isSameRegion = locksBefore.get(room)!.join() === locksBefore.get(other)!.join(); // P2
      if (isSameRegion && random.next() < EXTRA_PASSAGE_SHARE) join(exits, room, direction, other, undefined);
    }
  }
  for (const list of exits.values()) {
    list.sort((a, b) => DIRECTIONS.indexOf(a.direction) - DIRECTIONS.indexOf(b.direction));
  }
  return { rooms, exits, doors, openDoors, lockedRooms, locksBefore };
}

/** A free cell beside one of the rooms; there always is one, as the grid has no border. */
function drawNeighbour(
  random: Random,
  rooms: readonly RoomName[],
  cellOf: ReadonlyMap<RoomName, readonly [number, number]>,
  cells: ReadonlyMap<string, RoomName>,
): readonly [cell: readonly [number, number], parent: readonly [RoomName, Direction]] {
  const free = rooms.flatMap((room) => {
    const [column, row] = cellOf.get(room)!;
    return DIRECTIONS.flatMap((direction) => {
      const [columns, rowsDown] = STEPS[direction];
      const cell = [column + columns, row + rowsDown] as const;
      return cells.has(cell.join()) ? [] : [[cell, [room, direction]] as const];
    });
  });
  return random.pick(free);
}

/** In the order in which the rooms joined, so that a room never comes before one through which it is reached (P3). */
function drawLocked(random: Random, rooms: readonly RoomName[], numLocked: number): readonly RoomName[] {
  const others = rooms.slice(1);
  const locked = new Set<RoomName>();
  while (locked.size < Math.min(numLocked, others.length)) locked.add(random.pick(others));
  return others.filter((room) => locked.has(room));
}

function locksOf(
  rooms: readonly RoomName[],
  parents: FloorPlanParents,
  lockedRooms: readonly RoomName[],
): ReadonlyMap<RoomName, readonly RoomName[]> {
  const locks = new Map<RoomName, readonly RoomName[]>();
  for (const room of rooms) {
    const [parent] = parents.get(room) ?? [];
    const before = parent === undefined ? [] : locks.get(parent)!;
    locks.set(room, lockedRooms.includes(room) ? [...before, room] : before);
  }
  return locks;
}

type FloorPlanParents = ReadonlyMap<RoomName, readonly [parent: RoomName, direction: Direction]>;

function join(
  exits: ReadonlyMap<RoomName, Exit[]>,
  from: RoomName,
  direction: Direction,
  to: RoomName,
  door: string | undefined,
): void {
  const way = door === undefined ? {} : { door };
  exits.get(from)!.push({ direction, to, ...way });
  exits.get(to)!.push({ direction: oppositeOf(direction), to: from, ...way });
}
