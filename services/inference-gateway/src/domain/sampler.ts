/**
 * Draws tokens from rows of logits.
 *
 * With logits l_i, temperature T, kept set K (top-k first, then top-p over what is left, ties to the lower id):
 *
 *   w_i = exp((l_i - max l) / T)        p_i = w_i / sum over K of w_j        logprob_i = log p_i
 *
 * S1: float64 throughout; sums and the inverse CDF run over ids in ascending order, so the result is a function of
 *     the row, the parameters and one uniform number.
 *     Where the sums over a row come with it, in blocks (RowMasses), they are float32 and only the drawn block is read:
 *     the block by its mass, the token in it by float64 weights, which leaves logprobs true to about 1e-6.
 * S2: the logprob is that of the distribution drawn from. At temperature 0 that is a point: 0.
 */

import { EngineFailedError } from "./errors.ts";
import type { SamplingParameters } from "./inference-engine.ts";

type Shape = Pick<SamplingParameters, "temperature" | "topP" | "topK">;

/** Sums over a row of logits at its temperature (at 0: 1), with scaled = logit / temperature in float32. */
export interface RowMasses {
  /** The largest scaled logit. */
  readonly largest: number;
  /** [B] sums of exp(scaled - largest) over consecutive blocks of V/B tokens. */
  readonly blockMasses: Float32Array;
}

/** Below, float32 logits divided by the temperature lose the digits that logprobs need. */
const MIN_SCALED_TEMPERATURE = 0.1;

/** Keeps its scratch between calls: `id` and `logprob` hold the last draw. */
export class Sampler {
  id = 0;
  logprob = 0;
  readonly #weights: Float64Array;
  readonly #sorted: Float32Array;
  readonly #candidates: Int32Array;
  readonly #isKept: Uint8Array;

  constructor(vocabularySize: number) {
    this.#weights = new Float64Array(vocabularySize);
    this.#sorted = new Float32Array(vocabularySize);
    this.#candidates = new Int32Array(vocabularySize);
    this.#isKept = new Uint8Array(vocabularySize);
  }

  /**
   * Draws one token.
   * @param logits one row [V].
   * @param uniform in [0, 1).
   * @param masses of the row, where known; used where the whole vocabulary may be drawn.
   * @throws {EngineFailedError} when the row holds no finite maximum: the weights have diverged.
   */
  sample(logits: Float32Array, shape: Shape, uniform: number, masses?: RowMasses): void {
    const isRestricted = (shape.topK > 0 && shape.topK < logits.length) || shape.topP < 1;
    const isScaled =
      shape.temperature === 0 || (shape.temperature >= MIN_SCALED_TEMPERATURE && !isRestricted);
    if (masses !== undefined && isScaled) {
      this.#sampleBlock(logits, shape.temperature, uniform, masses);
      return;
    }
    const best = argmax(logits);
    const max = logits[best]!;
    checkFinite(max);
    if (shape.temperature === 0) {
      this.id = best;
      this.logprob = 0;
      return;
    }
    const weights = this.#weights;
    const size = logits.length;
    let sum = 0;
    for (let id = 0; id < size; id++) {
      const weight = Math.exp((logits[id]! - max) / shape.temperature);
      weights[id] = weight;
      sum += weight;
    }
    if (isRestricted) sum = this.#restrict(logits, shape);
    const target = uniform * sum;
    let cumulative = 0;
    let drawn = best;
    for (let id = 0; id < size; id++) {
      const weight = weights[id]!;
      if (weight === 0) continue;
      cumulative += weight;
      // Rounding may leave the last sum below the target: the last token that can be drawn is drawn then.
      drawn = id;
      if (cumulative > target) break;
    }
    this.id = drawn;
    this.logprob = Math.fround((logits[drawn]! - max) / shape.temperature - Math.log(sum));
  }

  #sampleBlock(logits: Float32Array, temperature: number, uniform: number, masses: RowMasses): void {
    const { largest, blockMasses } = masses;
    let sum = 0;
    for (const mass of blockMasses) sum += mass;
    checkFinite(largest + sum);
    if (temperature === 0) {
      this.id = logits.indexOf(largest);
      this.logprob = 0;
      return;
    }
    const target = uniform * sum;
    let before = 0;
    let block = 0;
    for (let next = 0; next < blockMasses.length; next++) {
      if (blockMasses[next] === 0) continue;
      // As below, rounding may leave the target behind the last block.
      before += block === next ? 0 : blockMasses[block]!;
      block = next;
      if (before + blockMasses[block]! > target) break;
    }
    const size = logits.length / blockMasses.length;
    const begin = block * size;
    const scale = inverseTemperature(temperature);
    const weightOf = (id: number) => Math.exp(Math.fround(logits[id]! * scale) - largest);
    let inBlock = 0;
    for (let id = begin; id < begin + size; id++) inBlock += weightOf(id);
    // The block's mass is a float32 sum of the same weights: the target keeps its place in it.
    const targetInBlock = ((target - before) / blockMasses[block]!) * inBlock;
    let cumulative = 0;
    for (let id = begin; id < begin + size; id++) {
      const weight = weightOf(id);
      if (weight === 0) continue;
      cumulative += weight;
      this.id = id;
      if (cumulative > targetInBlock) break;
    }
    this.logprob = Math.fround(Math.fround(logits[this.id]! * scale) - largest - Math.log(sum));
  }

  /** Zeroes the weights outside the kept set. @returns the sum of those inside. */
  #restrict(logits: Float32Array, shape: Shape): number {
    const weights = this.#weights;
    const size = logits.length;
    if (shape.topK > 0 && shape.topK < size) this.#keepTopK(logits, shape.topK);
    if (shape.topP < 1) this.#keepTopP(size, shape.topP);
    let sum = 0;
    for (let id = 0; id < size; id++) sum += weights[id]!;
    return sum;
  }

  #keepTopK(logits: Float32Array, topK: number): void {
    const size = logits.length;
    const sorted = this.#sorted;
    sorted.set(logits);
    sorted.sort();
    const threshold = sorted[size - topK]!;
    let above = 0;
    for (let id = 0; id < size; id++) if (logits[id]! > threshold) above++;
    let ties = topK - above;
    for (let id = 0; id < size; id++) {
      const logit = logits[id]!;
      if (logit > threshold || (logit === threshold && ties-- > 0)) continue;
      this.#weights[id] = 0;
    }
  }

  #keepTopP(size: number, topP: number): void {
    const weights = this.#weights;
    let sum = 0;
    for (let id = 0; id < size; id++) sum += weights[id]!;
    // Tokens below this share hold less than 1 - topP together, so the kept set never needs them; it spares the sort.
    const floor = (sum * (1 - topP)) / size;
    let count = 0;
    for (let id = 0; id < size; id++) if (weights[id]! >= floor) this.#candidates[count++] = id;
    const ranked = this.#candidates.subarray(0, count).sort((a, b) => weights[b]! - weights[a]! || a - b);
    const isKept = this.#isKept.fill(0);
    let cumulative = 0;
    for (const id of ranked) {
      isKept[id] = 1;
      cumulative += weights[id]!;
      if (cumulative >= topP * sum) break;
    }
    for (let id = 0; id < size; id++) if (isKept[id] === 0) weights[id] = 0;
  }
}

/** What logits are multiplied with where {@link RowMasses} are computed. */
export function inverseTemperature(temperature: number): number {
  return temperature === 0 ? 1 : Math.fround(1 / temperature);
}

function checkFinite(value: number): void {
  if (Number.isFinite(value)) return;
  throw new EngineFailedError(
    `Cannot sample a token as its logits are not finite: current value is ${value}`,
  );
}

/** Lowest id of the largest logit. A row with a NaN gives that NaN, so that it cannot pass unseen. */
function argmax(logits: Float32Array): number {
  let best = 0;
  for (let id = 0; id < logits.length; id++) {
    if (Number.isNaN(logits[id]!)) return id;
    if (logits[id]! > logits[best]!) best = id;
  }
  return best;
}
