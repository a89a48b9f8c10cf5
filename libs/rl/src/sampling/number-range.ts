/** Ranges of numbers: a check, the rule in words and a schema, all from one value. */

import { z } from "zod";

export interface NumberRange {
  readonly lowest: number;
  /** Whether `lowest` itself is out of range. @default false */
  readonly isAbove?: boolean;
  /** @default no limit */
  readonly highest?: number;
  /** Whether only whole numbers are in range, below 2^53. @default false */
  readonly isWhole?: boolean;
}

export function isInRange(
  value: number,
  { lowest, isAbove = false, highest = Infinity, isWhole = false }: NumberRange,
): boolean {
  if (isWhole && !Number.isSafeInteger(value)) return false;
  return (isAbove ? value > lowest : value >= lowest) && value <= highest;
}

/** @returns the end of a sentence about a number, such as `must be above 0 and at most 1`. */
export function rangeRule({ lowest, isAbove = false, highest, isWhole = false }: NumberRange): string {
  const number = isWhole ? "must be a whole number" : "must be";
  if (isAbove) return `${number} above ${lowest}${highest === undefined ? "" : ` and at most ${highest}`}`;
  if (highest !== undefined) return `${number} from ${lowest} to ${highest}`;
  return `${number}${isWhole ? " of" : ""} at least ${lowest}`;
}

export function numberIn({ lowest, isAbove = false, highest, isWhole = false }: NumberRange): z.ZodNumber {
  const number = isWhole ? z.number().int() : z.number();
  const bounded = isAbove ? number.gt(lowest) : number.min(lowest);
  return highest === undefined ? bounded : bounded.max(highest);
}
