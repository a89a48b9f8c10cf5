/** Pure functions that map values to positions on a chart. */

/** A point of a line. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

export type Range = readonly [low: number, high: number];
/** Maps a value to a position. */
export type Scale = (value: number) => number;

/** Evenly spaced round values inside a range; their distance is 1, 2 or 5 times a power of ten. */
export function niceTicks(low: number, high: number, wanted: number): number[] {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step =
    [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough * 0.999) ??
    10 * power;
  const ticks: number[] = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++)
    ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

/** The range of values with some margin, never empty. @param options `isFromZero`: the range begins at 0 if no value is negative. */
export function domainOf(
  values: readonly number[],
  { isFromZero = false }: { readonly isFromZero?: boolean } = {},
): Range {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) [low, high] = [0, 1];
  if (low === high) {
    const margin = low === 0 ? 1 : Math.abs(low) * 0.1;
    low -= margin;
    high += margin;
  }
  const margin = (high - low) * 0.06;
  // A range that would begin near 0 begins at 0.
  const isZeroBased = low >= 0 && (isFromZero || low < (high - low) * 0.35);
  return [isZeroBased ? 0 : low - margin, high + margin];
}

export function linear([low, high]: Range, [begin, end]: Range): Scale {
  const factor = high === low ? 0 : (end - begin) / (high - low);
  return (value) => begin + (value - low) * factor;
}

/**
 * Moving average with triangular weights over `reach` neighbours on each side, fewer at the ends. It is centred, so that
 * a rising curve is not drawn too late.
 */
export function smooth(points: readonly Point[], reach: number): Point[] {
  const width = Math.max(1, Math.round(reach)) + 1;
  return points.map(({ x }, i) => {
    let sum = 0;
    let weight = 0;
    for (let k = Math.max(0, i - width + 1); k < Math.min(points.length, i + width); k++) {
      const share = width - Math.abs(k - i);
      sum += share * (points[k]?.y ?? 0);
      weight += share;
    }
    return { x, y: sum / weight };
  });
}

/** Reduces points to at most `most`, the number of columns on the screen, by averaging neighbours. */
export function thin(points: readonly Point[], most: number): readonly Point[] {
  if (points.length <= most) return points;
  const size = points.length / most;
  return Array.from({ length: most }, (_, i) => {
    const part = points.slice(
      Math.floor(i * size),
      Math.max(Math.floor(i * size) + 1, Math.floor((i + 1) * size)),
    );
    const mean = (of: (point: Point) => number) =>
      part.reduce((sum, point) => sum + of(point), 0) / part.length;
    return { x: mean((point) => point.x), y: mean((point) => point.y) };
  });
}

/** The attribute `d` of a path through points. */
export function pathThrough(points: readonly Point[], x: Scale, y: Scale): string {
  return points
    .map((point, i) => `${i === 0 ? "M" : "L"}${x(point.x).toFixed(1)} ${y(point.y).toFixed(1)}`)
    .join("");
}

/** Index of the nearest value in an ascending list. */
export function nearestIndex(values: readonly number[], wanted: number): number {
  const at = (index: number) => values[index] ?? Number.NaN;
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(middle) < wanted) low = middle + 1;
    else high = middle;
  }
  return low > 0 && wanted - at(low - 1) < at(low) - wanted ? low - 1 : low;
}
