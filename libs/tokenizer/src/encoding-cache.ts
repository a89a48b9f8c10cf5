/**
 * Remembers the token ids of texts that come again: the prompts of a group, and everything that an environment with
 * few states says. Least recently used entries leave first, so that neither their number nor what they hold together grows
 * beyond a bound.
 */

/** Longer texts are not worth keeping: they seldom repeat, and would fill the memory. */
const MAX_CACHED_CHARACTERS = 8_192;
/** Characters and ids of an entry take about as much again in headers. */
const ENTRY_OVERHEAD = 32;

export interface EncodingCacheLimits {
  readonly maxEntries: number;
  /** Characters and ids together, and {@link ENTRY_OVERHEAD} for each entry. */
  readonly maxValues: number;
}

export class EncodingCache {
  readonly #limits: EncodingCacheLimits;
  readonly #entries = new Map<string, readonly number[]>();
  #values = 0;

  constructor(limits: EncodingCacheLimits) {
    this.#limits = limits;
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
    this.#entries.set(text, ids);
    this.#values += valuesOf(text, ids);
    const { maxEntries, maxValues } = this.#limits;
    for (const [oldest, theirs] of this.#entries) {
      if (this.#entries.size <= maxEntries && this.#values <= maxValues) break;
      this.#entries.delete(oldest);
      this.#values -= valuesOf(oldest, theirs);
    }
    return ids;
  }
}

function valuesOf(text: string, ids: readonly number[]): number {
  return text.length + ids.length + ENTRY_OVERHEAD;
}
