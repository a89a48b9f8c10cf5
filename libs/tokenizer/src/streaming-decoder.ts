/**
 * Text of tokens that come one after the other. A character that several tokens make up is told with its last one, so
 * that what is told is always whole characters, and all of it together is the text of all tokens.
 */
import type { Tokenizer } from "./tokenizer.ts";

/** What bytes decode to that are no character, or not yet. */
const REPLACEMENT = "\uFFFD";
/** Bytes of the longest character; what is longer and still none will never become one. */
const MAX_CHARACTER_TOKENS = 4;

export class StreamingDecoder {
  readonly #tokenizer: Tokenizer;
  /** Tokens told last, which decide how the next ones begin: some decoders drop the first space of a text. */
  #told: number[] = [];
  /** Tokens whose text is not told yet. */
  #pending: number[] = [];

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }

  /** @returns the text that is certain now; empty while a character is not whole. */
  push(id: number): string {
    this.#pending.push(id);
    const text = this.#pendingText();
    if (text.endsWith(REPLACEMENT) && this.#pending.length < MAX_CHARACTER_TOKENS) return "";
    return this.#tell(text);
  }

  /** @returns the text of what is still pending, whole or not. */
  flush(): string {
    return this.#tell(this.#pendingText());
  }

  #pendingText(): string {
    const before = this.#tokenizer.decode(this.#told);
    return this.#tokenizer.decode([...this.#told, ...this.#pending]).slice(before.length);
  }

  #tell(text: string): string {
    if (this.#pending.length > 0) this.#told = this.#pending;
    this.#pending = [];
    return text;
  }
}
