/** Draws a small curve as text, with a resolution of an eighth of a line. */

const BLOCKS = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const EIGHTHS = BLOCKS.length - 1;

export interface CurveOptions {
  readonly width: number;
  readonly height: number;
  /** Value at the bottom. @default 0 */
  readonly min?: number;
  /** Value at the top. @default 1 */
  readonly max?: number;
}

/**
 * Draws values from left to right. If there are more values than columns, each column shows the mean of its values.
 * @returns the lines from top to bottom, each with the value at its upper edge.
 */
export function drawCurve(values: readonly number[], options: CurveOptions): string[] {
  const { width, height, min = 0, max = 1 } = options;
  if (values.length === 0) return [];
  const numColumns = Math.min(width, values.length);
  const columns = Array.from({ length: numColumns }, (_, column) => {
    const from = Math.floor((column * values.length) / numColumns);
    const to = Math.floor(((column + 1) * values.length) / numColumns);
    const part = values.slice(from, to);
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
  return Array.from({ length: height }, (_, row) => {
    const bottom = (height - 1 - row) * EIGHTHS;
    const cells = columns.map((value) => {
      const filled = Math.round(((value - min) / (max - min)) * height * EIGHTHS) - bottom;
      return BLOCKS[Math.max(0, Math.min(EIGHTHS, filled))];
    });
    const top = min + ((height - row) / height) * (max - min);
    return `${top.toFixed(2)} ┤${cells.join("")}`;
  });
}
