/** Summarises the rounds of one figure in four numbers. */
export interface Summary {
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
  /** (highest - lowest) / median, the spread of the rounds. */
  readonly spread: number;
}

/** @throws {RangeError} without values, or for a value that is not finite. */
export function summarise(values: readonly number[]): Summary {
  const sorted = [...values].sort((a, b) => a - b);
  const lowest = sorted[0];
  const highest = sorted.at(-1);
  if (lowest === undefined || highest === undefined || sorted.some((value) => !Number.isFinite(value))) {
    throw new RangeError(
      `the rounds [${values.join(", ")}] cannot be summarised; there must be at least one, and all must be finite`,
    );
  }
  const middle = sorted.length / 2;
  const median = (sorted[Math.floor(middle - 0.5)]! + sorted[Math.floor(middle)]!) / 2;
  return { median, lowest, highest, spread: median === 0 ? 0 : (highest - lowest) / median };
}
