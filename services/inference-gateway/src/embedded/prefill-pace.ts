/**
 * How many prompt tokens a step may compute so that it stays short: what waits behind it is every sequence that decodes,
 * every new request and every abort. The pace is measured run by run, so it follows the model, the machine and what else
 * keeps it busy.
 */

/** Share of a new measurement. */
const WEIGHT = 0.3;
/** Runs with fewer tokens tell what reading the weights costs, not what a token does. */
const MIN_MEASURED_TOKENS = 32;
/** However slow: smaller chunks would spend most of their time on reading the weights. */
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

  /** Learns from a run. */
  measured(tokens: number, ms: number): void {
    if (tokens < MIN_MEASURED_TOKENS) return;
    const found = ms / tokens;
    this.#msPerToken =
      this.#msPerToken === undefined ? found : this.#msPerToken + WEIGHT * (found - this.#msPerToken);
  }
}
