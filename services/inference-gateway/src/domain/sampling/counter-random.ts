/**
 * Uniform random numbers that depend only on a seed and a position, so that samples can be repeated.
 *
 * Threefry-2x32 with 20 rounds: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). It keeps no state
 * between positions, and is exact in 32-bit integer arithmetic.
 */

const ROTATIONS = [13, 15, 26, 6, 17, 29, 16, 24] as const;
const ROUNDS = 20;
/** The paper's parity constant for 32-bit words. With it a key of zeros is not a weak one. */
const PARITY = 0x1bd11bda;
const TWO_32 = 0x1_0000_0000;

/**
 * One number in [0, 1) with 53 random bits.
 * @param seed a non-negative safe integer.
 * @param position a non-negative integer below 2^32.
 */
export function uniformAt(seed: number, position: number): number {
  const [high, low] = threefry2x32(seed >>> 0, Math.floor(seed / TWO_32) >>> 0, position >>> 0, 0);
  return ((high >>> 5) * 67_108_864 + (low >>> 6)) / 9_007_199_254_740_992;
}

/** The block function, of a counter of 64 bits and a key of 64 bits. */
export function threefry2x32(
  key0: number,
  key1: number,
  counter0: number,
  counter1: number,
): [number, number] {
  const keys = [key0, key1, key0 ^ key1 ^ PARITY] as const;
  let x0 = (counter0 + key0) | 0;
  let x1 = (counter1 + key1) | 0;
  for (let round = 0; round < ROUNDS; round++) {
    const rotation = ROTATIONS[round % 8]!;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << rotation) | (x1 >>> (32 - rotation))) ^ x0;
    if (round % 4 === 3) {
      const injection = (round + 1) / 4;
      x0 = (x0 + keys[injection % 3]!) | 0;
      x1 = (x1 + keys[(injection + 1) % 3]! + injection) | 0;
    }
  }
  return [x0 >>> 0, x1 >>> 0];
}
