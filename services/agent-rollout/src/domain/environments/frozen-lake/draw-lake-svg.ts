/** Draws a frozen lake: ice, holes of dark water, the goal as a flag, and the player. */

import { BoardColor, boardSvg, placeOf, player, tile } from "../board-svg.ts";
import type { Lake } from "./lake.ts";

const ICE = tile(BoardColor.ice);
const HOLE = `${ICE}<circle r="19" fill="${BoardColor.water}"/>`;
const FLAG = [
  `<path d="M-7 18V-17" stroke="${BoardColor.wall}" stroke-width="3" stroke-linecap="round"/>`,
  `<path d="M-5.5 -17L14 -10L-5.5 -3Z" fill="${BoardColor.box}"/>`,
].join("");
/** In the corner, so that the player before it does not hide it. */
const SMALL_FLAG = `<g transform="translate(14 -12) scale(0.5)">${FLAG}</g>`;
const RING = `<circle r="19" fill="none" stroke="${BoardColor.good}" stroke-width="4"/>`;
const CROSS = `<path d="M-9 -9L9 9M9 -9L-9 9" stroke="${BoardColor.light}" stroke-width="4" stroke-linecap="round"/>`;
const DROWNED = `<circle r="14" fill="${BoardColor.bad}"/>${CROSS}`;

/** @param cell where the player is. */
export function drawLakeSvg(lake: Lake, cell: number): string {
  const { size, holes, goal } = lake;
  return boardSvg({
    title: titleOf(lake, cell),
    rows: size,
    columns: size,
    drawCell(each) {
      const hasPlayer = each === cell;
      if (holes.has(each)) return hasPlayer ? HOLE + DROWNED : HOLE;
      if (each === goal) return hasPlayer ? ICE + RING + player(BoardColor.good) + SMALL_FLAG : ICE + FLAG;
      return hasPlayer ? ICE + player() : ICE;
    },
  });
}

function titleOf({ size, holes, goal }: Lake, cell: number): string {
  const place = placeOf(cell, size);
  if (cell === goal) return `Frozen lake: the player is at the goal in ${place}`;
  if (holes.has(cell)) return `Frozen lake: the player fell into the hole in ${place}`;
  return `Frozen lake: the player is in ${place}, and the goal in ${placeOf(goal, size)}`;
}
