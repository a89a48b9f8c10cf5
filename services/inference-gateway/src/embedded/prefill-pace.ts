/**
 * How many prompt tokens a step may compute so that it stays short, as every sequence that decodes, every new request and every
 * abort waits for its end. The pace is measured in each run, so it depends on the model, the machine and the machine's other
 * load.
 */

/** Weight of a new measurement in the average. */
const WEIGHT = 0.3;
/** The time of runs with fewer tokens is that of reading the weights, and does not depend on the tokens. */
const MIN_MEASURED_TOKENS = 32;
/** A lower limit, as smaller chunks would spend most of their time on reading the weights. */
const MIN_CHUNK_TOKENS = 64;

export class PrefillPace {
  #msPerToken: number | undefined;

  /** @param msPerToken a first guess. */
  constructor(msPerToken: number | undefined) {
    this.#msPerToken = msPerToken;
  }

  /** Most tokens for a step of that many milliseconds. */
  tokensIn(ms: number): number {
    if (this.#msPerToken === undefined) return Number.POSITIVE_INFINITY;
    return Math.max(MIN_CHUNK_TOKENS, Math.floor(ms / this.#msPerToken));
  }

  /** Adds the measurement of a run. */
  measured(tokens: number, ms: number): void {
    if (tokens < MIN_MEASURED_TOKENS) return;
    const found = ms / tokens;
    this.#msPerToken =
      this.#msPerToken === undefined ? found : this.#msPerToken + WEIGHT * (found - this.#msPerToken);
  }
}
