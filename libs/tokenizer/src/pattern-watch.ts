/**
 * Limits the time of the regular expressions in a tokenizer's files. The files come with a model or a run file, so they are
 * untrusted, and some expressions would take years for a text of sixty characters.
 *
 * R1: work with unknown expressions has a time limit, which grows with the text and is far above what ordinary expressions
 *     take, even on an overloaded machine. Known expressions (KNOWN) take time in proportion to the text, so they are not
 *     watched, nor are files without expressions.
 * R2: a tokenizer that exceeded its limit is refused from then on, so that it blocks its process once and not with every text.
 */

import { InterruptedError, interruptAfter } from "@hone/core";
import { EncodingLimitError } from "./errors.ts";

/** Time limit for an empty text; thousands of times what an ordinary tokenizer takes for a message. */
const BASE_MS = 5_000;
/** Additional time for each character; an ordinary tokenizer takes a few microseconds. */
const MS_PER_CHARACTER = 0.1;

/** Patterns of the families that Hone builds and of many other models; pattern-watch.test.ts measures them. */
const KNOWN: ReadonlySet<string> = new Set([
  // GPT-2
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
  // Llama 3
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
  // Qwen2, Qwen2.5 and Qwen3
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
]);

export class PatternWatch {
  /** Whether there are unknown expressions. */
  readonly isWatching: boolean;
  readonly #baseMs: number;
  #stopped: EncodingLimitError | undefined;

  /** @param parts the parts of tokenizer.json whose expressions the work uses. */
  constructor(parts: readonly unknown[], { baseMs = BASE_MS }: { readonly baseMs?: number } = {}) {
    this.isWatching = expressionsIn(parts).some((expression) => !KNOWN.has(expression));
    this.#baseMs = baseMs;
  }

  /**
   * Runs work on a text.
   * @throws {EncodingLimitError} if this or earlier work took too long (R2), and any error of the work itself.
   */
  run<T>(characters: number, work: () => T): T {
    if (!this.isWatching) return work();
    if (this.#stopped !== undefined) throw this.#stopped;
    const ms = this.#baseMs + Math.ceil(characters * MS_PER_CHARACTER);
    try {
      return interruptAfter(ms, work);
    } catch (error) {
      if (!(error instanceof InterruptedError)) throw error;
      this.#stopped = new EncodingLimitError(`${ms} ms`, `a text of ${characters} characters`, {
        cause: error,
      });
      throw this.#stopped;
    }
  }
}

/** The values of all `Regex` keys in the parts, as the library compiles them. */
function expressionsIn(parts: readonly unknown[]): string[] {
  const found: string[] = [];
  const rest: unknown[] = [...parts];
  while (rest.length > 0) {
    const value = rest.pop();
    if (typeof value !== "object" || value === null) continue;
    for (const [key, inner] of Object.entries(value)) {
      if (key === "Regex") found.push(String(inner));
      else rest.push(inner);
    }
  }
  return found;
}
