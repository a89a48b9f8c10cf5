/**
 * The regular expressions of a tokenizer's files, within bounds: files come with a model or a run file, from anybody, and
 * there are expressions that take longer than anybody lives for a text of sixty characters.
 *
 * R1: work with expressions that nobody knows has a deadline, which grows with the text and is far beyond what sound ones
 *     take, also on a starved machine. Known ones (KNOWN) take time in proportion to the text; they, and files without
 *     any, are not watched.
 * R2: a tokenizer that was stopped once is refused from then on: it holds up its process once, not with every text.
 */

import { InterruptedError, interruptAfter } from "@hone/core";
import { EncodingLimitError } from "./errors.ts";

/** Time limit of an empty text; thousands of times what an ordinary tokenizer takes for a message. */
const BASE_MS = 5_000;
/** An honest tokenizer takes some microseconds for a character. */
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
  /** Whether there is anything to watch. */
  readonly isWatching: boolean;
  readonly #baseMs: number;
  #stopped: EncodingLimitError | undefined;

  /** @param parts of tokenizer.json whose expressions the work uses. */
  constructor(parts: readonly unknown[], { baseMs = BASE_MS }: { readonly baseMs?: number } = {}) {
    this.isWatching = expressionsIn(parts).some((expression) => !KNOWN.has(expression));
    this.#baseMs = baseMs;
  }

  /**
   * Does work on a text.
   * @throws {EncodingLimitError} where it takes too long, now or earlier (R2), and what the work throws.
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

/** What stands under `Regex` anywhere in the parts, as the library compiles it. */
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
