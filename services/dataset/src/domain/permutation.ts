/**
 * A shuffle of 0..size-1 that is computed one element at a time, in constant memory.
 *
 * A balanced Feistel network over 2h bits is a bijection whatever its round function is (Luby and Rackoff, "How to
 * construct pseudorandom permutations from pseudorandom functions", 1988). Cycle walking (Black and Rogaway, "Ciphers
 * with arbitrary finite domains", 2002) restricts it to 0..size-1: a value outside the range is permuted again. As
 * 2^2h < 4 * size, an element takes fewer than four steps on average.
 */

import { deriveSeed } from "@hone/core";

/** Four rounds make a strong pseudorandom permutation when the halves are wide; small domains have narrow halves and need more. */
const ROUNDS = 8;

/**
 * Makes the permutation that belongs to `key`.
 * @param size number of elements, 1 to 2^53 - 1.
 * @param key any non-negative safe integer; another key gives an unrelated order.
 * @returns the function from a position in 0..size-1 to the element that stands there.
 * @throws {RangeError} when the size is not a positive safe integer; the function throws one when a position lies outside.
 */
export function makePermutation(size: number, key: number): (position: number) => number {
  if (!Number.isSafeInteger(size) || size < 1) {
    throw new RangeError(
      `a permutation of ${size} elements cannot be made; the size must be a positive safe integer`,
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
        `a permutation of ${size} elements has no position ${position}; positions are 0 to ${size - 1}`,
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
