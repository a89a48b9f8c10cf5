/** Draws a room of Sokoban: walls, floor, targets as rings, boxes as crates, and the player. */

import { unreachable } from "@hone/core";
import { BoardColor, boardSvg, player, tile } from "../board-svg.ts";
import type { CELL_KINDS } from "./symbols.ts";

type CellKind = (typeof CELL_KINDS)[number];

export interface DrawnRoom {
  readonly rows: number;
  readonly columns: number;
  readonly numBoxes: number;
  readonly boxesOnTarget: number;
  kindAt(cell: number): CellKind;
}

const FLOOR = tile(BoardColor.ground);
const WALL = [
  tile(BoardColor.wall),
  `<path d="M-24 -8H24M-24 8H24M-8 -24V-8M8 -8V8M-8 8V24" stroke="${BoardColor.ground}" stroke-opacity="0.35" stroke-width="2"/>`,
].join("");
const TARGET = [
  `<circle r="10" fill="none" stroke="${BoardColor.target}" stroke-width="3"/>`,
  `<circle r="3.5" fill="${BoardColor.target}"/>`,
].join("");
const RING = `<circle r="20" fill="none" stroke="${BoardColor.target}" stroke-width="3"/>`;
const BOX = `${crate(BoardColor.box)}<path d="M-14 -14L14 14M14 -14L-14 14" stroke="${BoardColor.light}" stroke-width="3"/>`;
const BOX_ON_TARGET = `${crate(BoardColor.good)}<path d="M-10 1L-3 8L10 -8" fill="none" stroke="${BoardColor.light}" stroke-width="4" stroke-linecap="round" stroke-linejoin="round"/>`;

export function drawRoomSvg({ rows, columns, numBoxes, boxesOnTarget, kindAt }: DrawnRoom): string {
  return boardSvg({
    title: `Sokoban: ${boxesOnTarget} of ${numBoxes} ${numBoxes === 1 ? "box is" : "boxes are"} on a target`,
    rows,
    columns,
    drawCell: (cell) => drawKind(kindAt(cell)),
  });
}

function drawKind(kind: CellKind): string {
  switch (kind) {
    case "wall":
      return WALL;
    case "empty":
      return FLOOR;
    case "target":
      return FLOOR + TARGET;
    case "box":
      return FLOOR + BOX;
    case "boxOnTarget":
      return FLOOR + BOX_ON_TARGET;
    case "player":
      return FLOOR + player();
    case "playerOnTarget":
      return FLOOR + RING + player();
    default:
      return unreachable(kind);
  }
}

function crate(color: string): string {
  return `<rect x="-17" y="-17" width="34" height="34" rx="3" fill="${color}"/><rect x="-14" y="-14" width="28" height="28" fill="none" stroke="${BoardColor.light}" stroke-width="3"/>`;
}
