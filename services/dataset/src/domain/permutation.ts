/**
 * A shuffle of 0..size-1 that is computed one element at a time, in constant memory.
 *
 * A balanced Feistel network over 2h bits is a bijection whatever its round function is (Luby and Rackoff, "How to
 * construct pseudorandom permutations from pseudorandom functions", 1988). Cycle walking (Black and Rogaway, "Ciphers
 * with arbitrary finite domains", 2002) brings it down to 0..size-1: whatever leaves the range is permuted again. As
 * 2^2h < 4 * size, an element takes fewer than four walks on average.
 */

import { deriveSeed } from "@hone/core";

/** Four rounds make a strong pseudorandom permutation of wide halves; small domains have narrow ones and need more. */
const ROUNDS = 8;

/**
 * The permutation that `key` picks.
 * @param size number of elements, 1 to 2^53 - 1.
 * @param key any non-negative safe integer; another key gives an unrelated order.
 * @returns the function from a position in 0..size-1 to the element that stands there.
 * @throws {RangeError} when the size is no positive safe integer, or, from the function, when a position lies outside.
 */
export function makePermutation(size: number, key: number): (position: number) => number {
  if (!Number.isSafeInteger(size) || size < 1) {
    throw new RangeError(
      `Cannot shuffle as the size must be a positive safe integer: current value is ${size}`,
    );
  }
  const halfBits = Math.max(1, Math.ceil(Math.log2(size) / 2));
  const halfSize = 2 ** halfBits;
  const roundKeys = Array.from({ length: ROUNDS }, (_, round) => deriveSeed(key, "feistel", round) >>> 0);

  const encrypt = (value: number): number => {
    let left = Math.floor(value / halfSize);
    let right = value % halfSize;
    for (const roundKey of roundKeys) {
      // A half has at most 27 bits, so the low bits of a 32-bit hash fill it.
      const mixed = (left ^ scramble(right ^ roundKey)) & (halfSize - 1);
      left = right;
      right = mixed;
    }
    return left * halfSize + right;
  };

  return function elementAt(position: number): number {
    if (!Number.isInteger(position) || position < 0 || position >= size) {
      throw new RangeError(
        `Cannot look up a shuffled element as positions lie in 0..${size - 1}: current value is ${position}`,
      );
    }
    let element = encrypt(position);
    while (element >= size) element = encrypt(element);
    return element;
  };
}

/** The 32-bit finaliser of MurmurHash3 (Appleby): every input bit reaches every output bit. */
function scramble(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
