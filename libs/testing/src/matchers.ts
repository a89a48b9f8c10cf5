/** Assertions that `node:assert` lacks. */

import assert from "node:assert/strict";

export interface Tolerance {
  /** Allowed difference relative to the expected value. @default 1e-5 */
  readonly rtol?: number;
  /** Allowed difference beyond that, for values near zero. @default 1e-8 */
  readonly atol?: number;
  /** Put before the message. */
  readonly what?: string;
}

const DEFAULT_RTOL = 1e-5;
const DEFAULT_ATOL = 1e-8;

/**
 * Asserts |actual - expected| <= atol + rtol * |expected| for every element (NumPy's `allclose`). Equal infinities
 * are close, and NaN is close to NaN.
 * @throws {assert.AssertionError} naming the element that is furthest off.
 */
export function assertAllClose(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  options: Tolerance = {},
): void {
  const { rtol = DEFAULT_RTOL, atol = DEFAULT_ATOL, what = "values" } = options;
  assert.equal(actual.length, expected.length, `${what}: length`);
  let numOff = 0;
  let worst = { index: -1, excess: 0 };
  for (let index = 0; index < expected.length; index++) {
    const a = actual[index] ?? Number.NaN;
    const e = expected[index] ?? Number.NaN;
    if (Object.is(a, e) || a === e) continue;
    const excess = Math.abs(a - e) - (atol + rtol * Math.abs(e));
    if (excess <= 0) continue;
    numOff++;
    // NaN compares false with everything: it is the worst there is.
    if (worst.index < 0 || !(excess <= worst.excess)) worst = { index, excess };
  }
  if (numOff === 0) return;
  assert.fail(
    `${what}: ${numOff} of ${expected.length} differ by more than ${atol} + ${rtol} * |expected|, most at ${worst.index}: ` +
      `actual ${actual[worst.index]}, expected ${expected[worst.index]}`,
  );
}

/** Asserts that two numbers are close; see {@link assertAllClose}. */
export function assertClose(actual: number, expected: number, options: Tolerance = {}): void {
  assertAllClose([actual], [expected], options);
}
