/**
 * Makes the text of one choice from its tokens, while they are generated.
 *
 * X1: deltas have only whole characters, and no part of a stop text.
 * X2: the text depends only on the tokens, not on how they were grouped when they came.
 * X3: a token is in the delta with the first character of its text, or in a later one. Tokens of a stop text are in none.
 */

import { StopScanner, StreamingDecoder, type Tokenizer } from "@hone/tokenizer";
import type { TokenChunk, TokenLogprob } from "../inference-engine.ts";

/** A token that could have been sampled. */
export interface SpelledToken {
  readonly tokenId: number;
  /** The token decoded by itself, with U+FFFD where it has a part of a character. */
  readonly text: string;
  readonly logprob: number;
}

/** A sampled token that is part of the text. */
export interface TextToken extends SpelledToken {
  /** The most likely tokens at its position, as many as the request asks for. */
  readonly top: readonly SpelledToken[];
  /** Position of its text in the choice's text, in UTF-16 code units. */
  readonly offset: number;
}

export interface TextDelta {
  readonly text: string;
  readonly tokens: readonly TextToken[];
}

export interface ChoiceTextOptions {
  readonly tokenizer: Tokenizer;
  /** Tokens that end a generation and are not part of its text. */
  readonly stopTokenIds: readonly number[];
  readonly stopTexts: readonly string[];
}

export class ChoiceText {
  readonly #tokenizer: Tokenizer;
  readonly #stopTokenIds: ReadonlySet<number>;
  readonly #decoder: StreamingDecoder;
  readonly #scanner: StopScanner;
  #pending: TextToken[] = [];
  #decodedLength = 0;
  #textLength = 0;
  #tokenCount = 0;
  #isStopped = false;

  constructor({ tokenizer, stopTokenIds, stopTexts }: ChoiceTextOptions) {
    this.#tokenizer = tokenizer;
    this.#stopTokenIds = new Set(stopTokenIds);
    this.#decoder = new StreamingDecoder(tokenizer);
    this.#scanner = new StopScanner(stopTexts);
  }

  /** Whether a stop text was found; tokens after it are ignored. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Number of sampled tokens, with the stop token or those of the stop text. */
  get tokenCount(): number {
    return this.#tokenCount;
  }

  push({ tokenIds, logprobs, topLogprobs }: TokenChunk): TextDelta {
    let text = "";
    for (const [i, tokenId] of tokenIds.entries()) {
      if (this.#isStopped) break;
      text += this.#pushOne({ tokenId, logprob: logprobs[i]! }, topLogprobs?.[i] ?? []);
    }
    return this.#deltaOf(text);
  }

  /** Ends the text after the last token. @returns the rest of it. */
  end(): TextDelta {
    if (this.#isStopped) return this.#deltaOf("");
    const scanned = this.#scanner.push(this.#decoder.flush());
    this.#isStopped = scanned.isStopped;
    const text = scanned.isStopped ? scanned.text : scanned.text + this.#scanner.flush();
    const delta = this.#deltaOf(text);
    const rest = this.#isStopped ? [] : this.#pending;
    this.#pending = [];
    return { text: delta.text, tokens: [...delta.tokens, ...rest] };
  }

  #pushOne(token: TokenLogprob, top: readonly TokenLogprob[]): string {
    const { tokenId } = token;
    this.#tokenCount++;
    if (this.#stopTokenIds.has(tokenId)) return "";
    const spell = (one: TokenLogprob) => ({ ...one, text: this.#tokenizer.decode([one.tokenId]) });
    this.#pending.push({ ...spell(token), top: top.map(spell), offset: this.#decodedLength });
    if (this.#tokenizer.isSpecial(tokenId)) return "";
    const piece = this.#decoder.push(tokenId);
    this.#decodedLength += piece.length;
    const { text, isStopped } = this.#scanner.push(piece);
    this.#isStopped = isStopped;
    return text;
  }

  /** X3 */
  #deltaOf(text: string): TextDelta {
    this.#textLength += text.length;
    const firstPending = this.#pending.findIndex(({ offset }) => offset >= this.#textLength);
    const count = firstPending < 0 ? this.#pending.length : firstPending;
    return { text, tokens: this.#pending.splice(0, count) };
  }
}
