/** Rooms of Sokoban: walls, floor and targets, with boxes and a player. */

import { InvalidInputError } from "@hone/core";
import { moveReader } from "../../grid-moves.ts";
import { CELL_KINDS, type SokobanSymbols } from "../symbols.ts";

/** What a cell is apart from what stands on it. */
export const Ground = { wall: 0, floor: 1, target: 2 } as const;

/** A room with its boxes and its player; cells are numbered row by row, and the cells at the border are walls. */
export interface Room {
  readonly rows: number;
  readonly columns: number;
  /** One value of {@link Ground} for each cell. */
  readonly ground: Uint8Array;
  /** Cells of the boxes. */
  readonly boxes: readonly number[];
  /** Cell of the player. */
  readonly player: number;
}

/** In the order in which ROLL numbers them. */
export const MOVES = ["Up", "Down", "Left", "Right"] as const;
export type Move = (typeof MOVES)[number];

/** The move that an action names; undefined = it names none. */
export const moveNamed = moveReader(MOVES);

/**
 * What each of {@link MOVES} adds to the number of a cell. No result lies outside of the room, as the player and the boxes never
 * stand on its border.
 */
export function offsetsOf({ columns }: Pick<Room, "columns">): readonly [number, number, number, number] {
  return [-columns, columns, -1, 1];
}

/** The cells of the targets in order. */
export function targetsOf({ ground }: Pick<Room, "ground">): number[] {
  const targets: number[] = [];
  for (const [cell, kind] of ground.entries()) if (kind === Ground.target) targets.push(cell);
  return targets;
}

/**
 * Reads a room that is drawn with one symbol for each cell, such as `["#####", "#PXO#", "#####"]`.
 * @throws {InvalidInputError} when it is no room.
 */
export function roomOfRows(rows: readonly string[], symbols: SokobanSymbols): Room {
  const drawn = rows.map((row) => [...row]);
  const columns = drawn[0]?.length ?? 0;
  const ground = new Uint8Array(rows.length * columns);
  const boxes: number[] = [];
  const players: number[] = [];
  for (const [row, cells] of drawn.entries()) {
    if (cells.length !== columns) throw notARoom(rows, "rows of the same length");
    for (const [column, symbol] of cells.entries()) {
      const cell = row * columns + column;
      const kind = CELL_KINDS.find((each) => symbols[each] === symbol);
      if (kind === undefined) throw notARoom(rows, `only the symbols ${Object.values(symbols).join(" ")}`);
      const isBorder = row === 0 || row === rows.length - 1 || column === 0 || column === columns - 1;
      if (isBorder && kind !== "wall") throw notARoom(rows, "walls all along the border");
      if (kind === "box" || kind === "boxOnTarget") boxes.push(cell);
      if (kind === "player" || kind === "playerOnTarget") players.push(cell);
      ground[cell] = groundOf(kind);
    }
  }
  const room = { rows: rows.length, columns, ground, boxes, player: players[0] ?? 0 };
  if (players.length !== 1) throw notARoom(rows, "exactly one player");
  if (boxes.length === 0 || boxes.length !== targetsOf(room).length) {
    throw notARoom(rows, "at least one box, and as many targets as boxes");
  }
  return room;
}

function groundOf(kind: (typeof CELL_KINDS)[number]): number {
  switch (kind) {
    case "wall":
      return Ground.wall;
    case "empty":
    case "box":
    case "player":
      return Ground.floor;
    case "target":
    case "boxOnTarget":
    case "playerOnTarget":
      return Ground.target;
    default:
      return kind satisfies never;
  }
}

function notARoom(rows: readonly string[], allowed: string): InvalidInputError {
  return new InvalidInputError(`The text "${rows.join("\\n")}" is no room of Sokoban: it needs ${allowed}`, {
    path: "room",
    allowed,
  });
}
