/**
 * Finds the tokens that min-p, top-k and top-p keep. These are the first ones, called the front here, of all tokens in descending
 * order of their weights, with ties in ascending order of their ids. min-p applies first, then top-k, then top-p to the rest.
 *
 * L1: blocks are read in descending order of their weights, until the front is certain, as no token weighs more than its block.
 *     For a peaked distribution that takes a few blocks, for a flat one all of them.
 * L2: the front depends on the row and the rules, not on how many blocks were read.
 */

import type { SamplingRow } from "./sampling-row.ts";

export interface FrontRules {
  /** Most tokens; 0 = all. */
  readonly topK: number;
  /** Share of the probability that is enough; 1 = all. */
  readonly topP: number;
  /** Least weight, as a share of the most likely token's. */
  readonly minP: number;
}

/** Blocks to read before the first attempt to find the front; doubled until it is certain. */
const FIRST_BLOCKS = 4;
/** Sums of blocks are float32, so a token may seem to weigh this much more than its block. */
const MASS_SLACK = 1 + 1e-4;

export class LikelyTokens {
  readonly #ids: Int32Array;
  readonly #weights: Float64Array;
  readonly #sorted: Float64Array;
  #count = 0;

  constructor(vocabularySize: number) {
    this.#ids = new Int32Array(vocabularySize);
    this.#weights = new Float64Array(vocabularySize);
    this.#sorted = new Float64Array(vocabularySize);
  }

  /** @returns the ids of the front in ascending order, at least one; valid until the next call. */
  find(row: SamplingRow, rules: FrontRules): Int32Array {
    const { blockMasses } = row;
    let total = 0;
    for (let block = 0; block < blockMasses.length; block++) total += blockMasses[block]!;
    const blocks = Array.from({ length: blockMasses.length }, (_, block) => block);
    blocks.sort((a, b) => blockMasses[b]! - blockMasses[a]! || a - b);
    const least = leastWeight(row, rules, total);
    this.#count = 0;
    for (let read = 0, goal = FIRST_BLOCKS; ; goal *= 2) {
      for (; read < Math.min(goal, blocks.length); read++) this.#read(row, blocks[read]!, least);
      const isAll = read >= blocks.length;
      const bound = isAll ? 0 : blockMasses[blocks[read]!]! * MASS_SLACK;
      const sorted = this.#sorted.subarray(0, this.#count);
      sorted.set(this.#weights.subarray(0, this.#count));
      sorted.sort();
      const front = isAll || bound < (sorted.at(-1) ?? 0) ? frontOf(sorted, bound, rules, total) : undefined;
      if (front !== undefined) return this.#take(sorted, front);
    }
  }

  #read({ size, blockSize, scoreOf }: SamplingRow, block: number, least: number): void {
    const end = Math.min(size, (block + 1) * blockSize);
    for (let id = block * blockSize; id < end; id++) {
      const weight = Math.exp(scoreOf(id));
      if (weight < least || weight === 0) continue;
      this.#ids[this.#count] = id;
      this.#weights[this.#count++] = weight;
    }
  }

  /** The `front` heaviest of the tokens that were read, with ties in ascending order of ids. */
  #take(sorted: Float64Array, front: number): Int32Array {
    const lightest = sorted[sorted.length - front]!;
    const kept: number[] = [];
    const tied: number[] = [];
    for (let i = 0; i < this.#count; i++) {
      if (this.#weights[i]! > lightest) kept.push(this.#ids[i]!);
      else if (this.#weights[i] === lightest) tied.push(this.#ids[i]!);
    }
    tied.sort((a, b) => a - b);
    return Int32Array.from([...kept, ...tied.slice(0, front - kept.length)]).sort();
  }
}

/** Tokens below this weight cannot be in the front. */
function leastWeight({ size }: SamplingRow, { topK, topP, minP }: FrontRules, total: number): number {
  if (minP > 0 || topK > 0) return minP;
  // All lighter tokens together have less than 1 - topP.
  return (total * (1 - topP)) / size;
}

/**
 * @param sorted weights that were read, ascending.
 * @param bound the largest possible weight of a token that was not read.
 * @param total sum of all weights.
 * @returns the number of tokens of the front; undefined when tokens that were not read may belong to it.
 */
function frontOf(
  sorted: Float64Array,
  bound: number,
  { topK, topP, minP }: FrontRules,
  total: number,
): number | undefined {
  const isAll = bound === 0;
  const most = topK > 0 ? topK : sorted.length;
  let known = 0;
  let sum = 0;
  for (; known < most && known < sorted.length; known++) {
    const weight = sorted[sorted.length - 1 - known]!;
    if (!isAll && weight < bound) break;
    sum += weight;
  }
  // Only those of min-p's tokens that are heavy enough were read.
  const isSettled = isAll || (topK > 0 && known === topK) || (minP > 0 && bound <= minP);
  if (topP === 1) return isSettled ? Math.max(1, known) : undefined;
  const isWhole = topK === 0 && minP === 0;
  if (!isSettled && !isWhole) return undefined;
  const wanted = topP * (isWhole ? total : sum);
  let reached = 0;
  for (let front = 1; front <= known; front++) {
    reached += sorted[sorted.length - front]!;
    if (reached >= wanted) return front;
  }
  // By rounding the sum may stay below the target.
  return isSettled ? Math.max(1, known) : undefined;
}
