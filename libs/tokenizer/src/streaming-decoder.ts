/**
 * Decodes tokens that arrive one after the other. A character that consists of several tokens is returned with the last of
 * them, so that every returned text has whole characters, and all of them together are the text of all tokens.
 */
import type { Tokenizer } from "./tokenizer.ts";

/** Invalid or incomplete bytes of a character decode to this. */
const REPLACEMENT = "\uFFFD";
/** Bytes of the longest character. If this many bytes are not a character, further bytes cannot complete one. */
const MAX_CHARACTER_TOKENS = 4;

export class StreamingDecoder {
  readonly #tokenizer: Tokenizer;
  /** The tokens returned last. The next text depends on them, because some decoders drop the first space of a text. */
  #decoded: number[] = [];
  /** Tokens whose text has not been returned yet. */
  #pending: number[] = [];

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }

  /** @returns the text that is complete now; empty while a character is incomplete. */
  push(id: number): string {
    this.#pending.push(id);
    const text = this.#pendingText();
    if (text.endsWith(REPLACEMENT) && this.#pending.length < MAX_CHARACTER_TOKENS) return "";
    return this.#take(text);
  }

  /** @returns the text of the remaining tokens, also if a character is incomplete. */
  flush(): string {
    return this.#take(this.#pendingText());
  }

  #pendingText(): string {
    const before = this.#tokenizer.decode(this.#decoded);
    return this.#tokenizer.decode([...this.#decoded, ...this.#pending]).slice(before.length);
  }

  #take(text: string): string {
    if (this.#pending.length > 0) this.#decoded = this.#pending;
    this.#pending = [];
    return text;
  }
}
