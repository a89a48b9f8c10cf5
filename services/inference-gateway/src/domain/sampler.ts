/**
 * Draws tokens from rows of logits.
 *
 * With logits l_i, temperature T, kept set K (top-k first, then top-p over what is left, ties to the lower id):
 *
 *   w_i = exp((l_i - max l) / T)        p_i = w_i / sum over K of w_j        logprob_i = log p_i
 *
 * S1: float64 throughout; sums and the inverse CDF run over ids in ascending order, so the result is a function of
 *     the row, the parameters and one uniform number.
 * S2: the logprob is that of the distribution drawn from. At temperature 0 that is a point: 0.
 */

import { EngineFailedError } from "./errors.ts";
import type { SamplingParameters } from "./inference-engine.ts";

type Shape = Pick<SamplingParameters, "temperature" | "topP" | "topK">;

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
   * @throws {EngineFailedError} when the row holds no finite maximum: the weights have diverged.
   */
  sample(logits: Float32Array, shape: Shape, uniform: number): void {
    const best = argmax(logits);
    const max = logits[best]!;
    if (!Number.isFinite(max)) {
      throw new EngineFailedError(
        `Cannot sample a token as its logits are not finite: current value is ${max}`,
      );
    }
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
    if ((shape.topK > 0 && shape.topK < size) || shape.topP < 1) sum = this.#restrict(logits, shape);
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

/** Lowest id of the largest logit. A row with a NaN gives that NaN, so that it cannot pass unseen. */
function argmax(logits: Float32Array): number {
  let best = 0;
  for (let id = 0; id < logits.length; id++) {
    if (Number.isNaN(logits[id]!)) return id;
    if (logits[id]! > logits[best]!) best = id;
  }
  return best;
}
