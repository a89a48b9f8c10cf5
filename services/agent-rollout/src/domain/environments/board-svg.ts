/**
 * Draws boards of square cells as SVG. Pictures bring their own background, so that they look the same on a dark page, and differ
 * in shape and not only in colour.
 */

/** Colours of all boards, which are those of the page in its light theme. */
export const BoardColor = {
  ground: "#f1f1ec",
  line: "#c9cac0",
  ice: "#dff0ef",
  water: "#123f5c",
  wall: "#4b5355",
  box: "#c4622d",
  target: "#8f5b00",
  good: "#1c7c43",
  bad: "#b3362b",
  player: "#0b6b71",
  light: "#ffffff",
} as const;

/** Sides of a cell in units of the picture; drawings of cells have their origin at the middle of the cell. */
export const CELL_SIZE = 48;

export interface Board {
  /** Says in words what can be seen. */
  readonly title: string;
  readonly rows: number;
  readonly columns: number;
  /** What is drawn in a cell, as SVG; cells are numbered row by row. */
  drawCell(cell: number): string;
}

/** @returns a complete SVG document. */
export function boardSvg({ title, rows, columns, drawCell }: Board): string {
  const [width, height] = [columns * CELL_SIZE, rows * CELL_SIZE];
  // Most cells look the same: each drawing is written once, and placed by its number.
  const drawings = new Map<string, number>();
  const places: string[] = [];
  for (let cell = 0; cell < rows * columns; cell++) {
    const x = (cell % columns) * CELL_SIZE + CELL_SIZE / 2;
    const y = Math.floor(cell / columns) * CELL_SIZE + CELL_SIZE / 2;
    const drawing = drawCell(cell);
    const number = drawings.get(drawing) ?? drawings.size;
    drawings.set(drawing, number);
    places.push(`<use href="#cell-${number}" x="${x}" y="${y}"/>`);
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
    `<title>${escaped(title)}</title>`,
    "<defs>",
    ...Array.from(drawings, ([drawing, number]) => `<g id="cell-${number}">${drawing}</g>`),
    "</defs>",
    ...places,
    "</svg>",
    "",
  ].join("\n");
}

/** Fills the cell. */
export function tile(fill: string): string {
  const half = CELL_SIZE / 2;
  return `<rect x="${-half}" y="${-half}" width="${CELL_SIZE}" height="${CELL_SIZE}" fill="${fill}" stroke="${BoardColor.line}"/>`;
}

/** The player: a round head with two eyes. @param color as what is around it may say how it fares. */
export function player(color: string = BoardColor.player): string {
  return [
    `<circle r="15" fill="${color}" stroke="${BoardColor.light}" stroke-width="2"/>`,
    `<circle cx="-5" cy="-3" r="2.6" fill="${BoardColor.light}"/>`,
    `<circle cx="5" cy="-3" r="2.6" fill="${BoardColor.light}"/>`,
  ].join("");
}

/** A place in words; rows and columns count from 1, as people count. */
export function placeOf(cell: number, columns: number): string {
  return `row ${Math.floor(cell / columns) + 1}, column ${(cell % columns) + 1}`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
