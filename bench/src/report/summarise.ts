/** Rounds of one figure in four numbers. */
export interface Summary {
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
  /** (highest - lowest) / median: how far the rounds lie apart. */
  readonly spread: number;
}

/** @throws {RangeError} without a value, or for one that is no number. */
export function summarise(values: readonly number[]): Summary {
  const sorted = [...values].sort((a, b) => a - b);
  const lowest = sorted[0];
  const highest = sorted.at(-1);
  if (lowest === undefined || highest === undefined || sorted.some((value) => !Number.isFinite(value))) {
    throw new RangeError(
      `Cannot summarise rounds as there must be finite figures: current value is ${values.join(", ")}`,
    );
  }
  const middle = sorted.length / 2;
  const median = (sorted[Math.floor(middle - 0.5)]! + sorted[Math.floor(middle)]!) / 2;
  return { median, lowest, highest, spread: median === 0 ? 0 : (highest - lowest) / median };
}
