/**
 * Remembers the token ids of texts that come again: the prompts of a group, and everything that an environment with
 * few states says. Least recently used entries leave first.
 */

/** Longer texts are not worth keeping: they seldom repeat, and would fill the memory. */
const MAX_CACHED_CHARACTERS = 8_192;

export class EncodingCache {
  readonly #maxEntries: number;
  readonly #entries = new Map<string, readonly number[]>();

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The ids of `text`, from the cache or from `encode`. The array is shared: read only. */
  getOrEncode(text: string, encode: (text: string) => readonly number[]): readonly number[] {
    const known = this.#entries.get(text);
    if (known !== undefined) {
      // Moved to the end: a map keeps the order of insertion, so the first key is the least recently used.
      this.#entries.delete(text);
      this.#entries.set(text, known);
      return known;
    }
    const ids = encode(text);
    if (text.length > MAX_CACHED_CHARACTERS) return ids;
    if (this.#entries.size >= this.#maxEntries) {
      for (const oldest of this.#entries.keys()) {
        this.#entries.delete(oldest);
        break;
      }
    }
    this.#entries.set(text, ids);
    return ids;
  }
}
