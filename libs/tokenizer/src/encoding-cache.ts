/**
 * Caches the token ids of texts that are encoded repeatedly: the prompts of a group, and the messages of environments with
 * few states. The least recently used entries are dropped first, so that neither the number of entries nor their total size
 * exceeds a limit.
 */

/** Longer texts are not cached, because they seldom repeat and would fill the memory. */
const MAX_CACHED_CHARACTERS = 8_192;
/** What an entry costs in addition to its characters and ids, for the headers of its objects. */
const ENTRY_OVERHEAD = 32;

export interface EncodingCacheLimits {
  readonly maxEntries: number;
  /** Limit for characters and ids together, plus {@link ENTRY_OVERHEAD} for each entry. */
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

  /** The ids of `text`, from the cache or from `encode`. The array is shared and must not be changed. */
  getOrEncode(text: string, encode: (text: string) => readonly number[]): readonly number[] {
    const known = this.#entries.get(text);
    if (known !== undefined) {
      // The entry moves to the end: a map keeps the order of insertion, so the first key is the least recently used.
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
