/**
 * Seeds and random numbers that depend on names and counters only, never on time or on the order of calls.
 *
 * `deriveSeed` hashes a parent seed with labels (FNV-1a over the text, then the SplitMix64 finaliser of Steele et
 * al., "Fast splittable pseudorandom number generators", 2014). `Random` is xoshiro128** by Blackman and Vigna
 * (https://prng.di.unimi.it), seeded through SplitMix64. Both are exact integer arithmetic: the same seed gives the
 * same numbers on every machine.
 */

const MASK_64 = (1n << 64n) - 1n;

function splitMix64(value: bigint): bigint {
  let z = (value + 0x9e3779b97f4a7c15n) & MASK_64;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK_64;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK_64;
  return z ^ (z >> 31n);
}

/**
 * Derives a seed from another one. The same parent and labels give the same result; other labels give an unrelated one.
 * @param parent a non-negative safe integer.
 * @returns an integer in [0, 2^53).
 */
export function deriveSeed(parent: number, ...labels: ReadonlyArray<string | number>): number {
  let hash = 0xcbf29ce484222325n ^ BigInt(parent);
  for (const label of labels) {
    // The type is part of the text, so that 1 and "1" differ, and the separator keeps ("ab","c") from ("a","bc").
    for (const byte of Buffer.from(`${typeof label === "number" ? "n" : "s"}${label}\u0000`)) {
      hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & MASK_64;
    }
    hash = splitMix64(hash);
  }
  return Number(splitMix64(hash) >> 11n);
}

/** A stream of random numbers, fixed by its seed. */
export class Random {
  readonly #state = new Uint32Array(4);

  constructor(seed: number) {
    let z = BigInt(seed);
    for (let i = 0; i < 4; i += 2) {
      z = splitMix64(z);
      this.#state[i] = Number(z & 0xffffffffn);
      this.#state[i + 1] = Number(z >> 32n);
    }
  }

  /** Uniform over the 32-bit unsigned integers. */
  nextUint32(): number {
    const s = this.#state;
    const scrambled = Math.imul(rotateLeft(Math.imul(s[1]!, 5), 7), 9) >>> 0;
    const t = s[1]! << 9;
    s[2]! ^= s[0]!;
    s[3]! ^= s[1]!;
    s[1]! ^= s[2]!;
    s[0]! ^= s[3]!;
    s[2]! ^= t;
    s[3] = rotateLeft(s[3]!, 11);
    return scrambled;
  }

  /** Uniform in [0, 1), with 53 random bits. */
  next(): number {
    return ((this.nextUint32() >>> 5) * 67_108_864 + (this.nextUint32() >>> 6)) / 9_007_199_254_740_992;
  }

  /** Uniform integer in [0, bound), without modulo bias. */
  nextInt(bound: number): number {
    if (!Number.isInteger(bound) || bound < 1 || bound > 0x1_0000_0000) {
      throw new RangeError(`A random integer cannot be drawn below ${bound}; give an integer from 1 to 2^32`);
    }
    const limit = 0x1_0000_0000 - (0x1_0000_0000 % bound);
    for (;;) {
      const value = this.nextUint32();
      if (value < limit) return value % bound;
    }
  }

  /** One of the items; all are equally likely. */
  pick<T>(items: readonly T[]): T {
    return items[this.nextInt(items.length)]!;
  }
}

function rotateLeft(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}
