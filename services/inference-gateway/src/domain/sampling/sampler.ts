/**
 * Draws tokens from rows of logits.
 *
 * With logits l_i after penalties, temperature T, kept set K (see LikelyTokens):
 *
 *   w_i = exp((l_i - max l) / T)        p_i = w_i / sum over K of w_j        logprob_i = log p_i
 *
 * S1: float64 throughout; sums and the inverse CDF run over ids in ascending order, so the result is a function of
 *     the row, the parameters and one uniform number.
 *     Where the sums over a row come with it, in blocks (RowMasses), they are float32 and only what is needed is read:
 *     the block by its mass, the token in it by float64 weights, which leaves logprobs true to about 1e-6.
 * S2: the logprob is that of the distribution drawn from. At temperature 0 that is a point: 0.
 */

import { EngineFailedError } from "../errors.ts";
import type { EngineSampling, TokenLogprob } from "../inference-engine.ts";
import { LikelyTokens } from "./likely-tokens.ts";
import { hasPenalties, type Penalties, penalize, type TextSoFar } from "./penalties.ts";
import { type DrawnBlock, type RowMasses, readRow, type SamplingRow, summedRow } from "./sampling-row.ts";

type Shape = Pick<EngineSampling, "temperature" | "topP" | "topK" | "minP" | "topLogprobs"> & Penalties;

/** What is known about a row in addition to its logits. */
export interface RowContext {
  /** Used unless penalties change the logits, or the draw needs more precision. */
  readonly masses?: RowMasses | undefined;
  /** The text for penalties; undefined = none are applied. */
  readonly text?: TextSoFar | undefined;
}

/** At lower temperatures, float32 logits divided by the temperature are not precise enough for logprobs. */
const MIN_SCALED_TEMPERATURE = 0.1;

/** Whether tokens are drawn from the whole vocabulary, for which the sums over a row and one block of it are enough. */
export function isFromAll({
  temperature,
  topP,
  topK,
  minP = 0,
  topLogprobs = 0,
  ...penalties
}: Shape): boolean {
  const isRestricted = topK > 0 || topP < 1 || minP > 0;
  const isPlain = !isRestricted && topLogprobs === 0 && !hasPenalties(penalties);
  return isPlain && temperature >= MIN_SCALED_TEMPERATURE;
}

/** Reuses its memory between calls; `id`, `logprob` and `top` are the results of the last one. */
export class Sampler {
  tokenId = 0;
  logprob = 0;
  /** The most likely tokens of the sampling distribution, as many as the request asks for. */
  top: readonly TokenLogprob[] = [];
  readonly #weights: Float64Array;
  readonly #penalized: Float32Array;
  readonly #likely: LikelyTokens;

  constructor(vocabularySize: number) {
    this.#weights = new Float64Array(vocabularySize);
    this.#penalized = new Float32Array(vocabularySize);
    this.#likely = new LikelyTokens(vocabularySize);
  }

  /**
   * Draws one token.
   * @param given one row [V] of logits; may be absent for a draw from the whole vocabulary whose block is given.
   * @param uniform in [0, 1).
   * @throws {EngineFailedError} when the row has no finite maximum, as the weights have diverged.
   */
  sample(given: Float32Array | undefined, shape: Shape, uniform: number, context: RowContext = {}): void {
    const { text } = context;
    const { temperature, topLogprobs = 0 } = shape;
    this.top = [];
    const { drawn } = context.masses ?? {};
    if (context.masses !== undefined && drawn !== undefined && isFromAll(shape)) {
      this.#drawIn(drawn, context.masses, temperature, uniform);
      return;
    }
    if (given === undefined) {
      throw new EngineFailedError("The row of logits of a token is missing");
    }
    const isPenalized = text !== undefined && hasPenalties(shape);
    const masses = isPenalized ? undefined : context.masses;
    const logits = isPenalized ? this.#penalize(given, shape, text) : given;
    if (temperature === 0) {
      this.tokenId = masses === undefined ? argmax(logits) : mostLikely(logits, masses);
      checkFinite(logits[this.tokenId]!);
      this.logprob = 0;
      if (topLogprobs > 0) this.top = [{ tokenId: this.tokenId, logprob: 0 }];
      return;
    }
    const isRestricted =
      (shape.topK > 0 && shape.topK < logits.length) || shape.topP < 1 || (shape.minP ?? 0) > 0;
    const isSummed = masses !== undefined && temperature >= MIN_SCALED_TEMPERATURE;
    if (isSummed) checkFinite(masses.largest + totalOf(masses.blockMasses));
    if (!isRestricted && topLogprobs === 0 && !isSummed) {
      this.#drawWhole(logits, temperature, uniform);
      return;
    }
    const row = isSummed
      ? summedRow(logits, temperature, masses, logits.length / masses.blockMasses.length)
      : readRow(logits, temperature, maxOf(logits));
    if (isRestricted) {
      this.#drawLikely(row, shape, uniform);
      return;
    }
    if (isSummed) this.#drawBlock(row, uniform, masses.drawn?.block);
    else this.#drawWhole(logits, temperature, uniform);
    if (topLogprobs === 0) return;
    const likely = this.#likely.find(row, { topK: topLogprobs, topP: 1, minP: 0 });
    this.#reportTop(row, likely, totalOf(row.blockMasses), topLogprobs);
  }

  /** Draws from the whole vocabulary, within a block that was drawn before. */
  #drawIn(drawn: DrawnBlock, masses: RowMasses, temperature: number, uniform: number): void {
    checkFinite(masses.largest + totalOf(masses.blockMasses));
    const blockSize = drawn.logits.length;
    const first = drawn.block * blockSize;
    const row = summedRow(drawn.logits, temperature, masses, blockSize, first);
    this.#drawBlock(row, uniform, drawn.block);
  }

  /** Draws from the whole vocabulary, and reads all of its logits. */
  #drawWhole(logits: Float32Array, temperature: number, uniform: number): void {
    const max = maxOf(logits);
    const weights = this.#weights;
    const size = logits.length;
    let sum = 0;
    for (let id = 0; id < size; id++) {
      const weight = Math.exp((logits[id]! - max) / temperature);
      weights[id] = weight;
      sum += weight;
    }
    const target = uniform * sum;
    let cumulative = 0;
    for (let id = 0; id < size; id++) {
      const weight = weights[id]!;
      if (weight === 0) continue;
      cumulative += weight;
      // By rounding the last sum may stay below the target; then the last possible token is drawn.
      this.tokenId = id;
      if (cumulative > target) break;
    }
    this.logprob = Math.fround((logits[this.tokenId]! - max) / temperature - Math.log(sum));
  }

  /** Draws a block by its mass, and then a token in it. */
  #drawBlock(row: SamplingRow, uniform: number, drawn?: number): void {
    const { blockMasses, blockSize, scoreOf } = row;
    const sum = totalOf(blockMasses);
    const target = uniform * sum;
    const block = drawn ?? blockAt(blockMasses, target);
    let before = 0;
    for (let earlier = 0; earlier < block; earlier++) before += blockMasses[earlier]!;
    const begin = block * blockSize;
    let inBlock = 0;
    for (let id = begin; id < begin + blockSize; id++) inBlock += Math.exp(scoreOf(id));
    // The block's mass is a float32 sum of the same weights: the target keeps its place in it.
    const targetInBlock = ((target - before) / blockMasses[block]!) * inBlock;
    let cumulative = 0;
    for (let id = begin; id < begin + blockSize; id++) {
      const weight = Math.exp(scoreOf(id));
      if (weight === 0) continue;
      cumulative += weight;
      this.tokenId = id;
      if (cumulative > targetInBlock) break;
    }
    this.logprob = Math.fround(scoreOf(this.tokenId) - Math.log(sum));
  }

  /** Draws from the tokens that min-p, top-k and top-p keep. */
  #drawLikely(row: SamplingRow, shape: Shape, uniform: number): void {
    const { topK, topP, minP = 0, topLogprobs = 0 } = shape;
    const kept = this.#likely.find(row, { topK: topK < row.size ? topK : 0, topP, minP });
    let sum = 0;
    for (const id of kept) sum += Math.exp(row.scoreOf(id));
    const target = uniform * sum;
    let cumulative = 0;
    for (const id of kept) {
      cumulative += Math.exp(row.scoreOf(id));
      this.tokenId = id;
      if (cumulative > target) break;
    }
    this.logprob = Math.fround(row.scoreOf(this.tokenId) - Math.log(sum));
    if (topLogprobs > 0) this.#reportTop(row, kept, sum, topLogprobs);
  }

  #reportTop(row: SamplingRow, ids: Int32Array, sum: number, count: number): void {
    const logSum = Math.log(sum);
    this.top = Array.from(ids, (tokenId) => ({
      tokenId,
      logprob: Math.fround(row.scoreOf(tokenId) - logSum),
    }))
      .sort((a, b) => b.logprob - a.logprob || a.tokenId - b.tokenId)
      .slice(0, count);
  }

  #penalize(logits: Float32Array, penalties: Penalties, text: TextSoFar): Float32Array {
    this.#penalized.set(logits);
    penalize(this.#penalized, penalties, text);
    return this.#penalized;
  }
}

/** The first block at which the cumulative mass exceeds the target; by rounding that may be none, and then it is the last. */
function blockAt(masses: ArrayLike<number>, target: number): number {
  let upTo = 0;
  let block = 0;
  for (let next = 0; next < masses.length; next++) {
    if (masses[next] === 0) continue;
    block = next;
    upTo += masses[next]!;
    if (upTo > target) break;
  }
  return block;
}

function totalOf(masses: ArrayLike<number>): number {
  let sum = 0;
  for (let block = 0; block < masses.length; block++) sum += masses[block]!;
  return sum;
}

function checkFinite(value: number): void {
  if (Number.isFinite(value)) return;
  throw new EngineFailedError(`The largest logit of a token is ${value}; it must be finite`);
}

function maxOf(logits: Float32Array): number {
  const max = logits[argmax(logits)]!;
  checkFinite(max);
  return max;
}

/** At temperature 0 logits are not scaled. */
function mostLikely(logits: Float32Array, { largest, blockMasses }: RowMasses): number {
  checkFinite(largest + totalOf(blockMasses));
  return logits.indexOf(largest);
}

/** Lowest id of the largest logit, or the id of a NaN if there is one, so that it is noticed. */
function argmax(logits: Float32Array): number {
  let best = 0;
  for (let id = 0; id < logits.length; id++) {
    if (Number.isNaN(logits[id]!)) return id;
    if (logits[id]! > logits[best]!) best = id;
  }
  return best;
}
