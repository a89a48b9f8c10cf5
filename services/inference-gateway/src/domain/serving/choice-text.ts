/**
 * The text of one choice, made from its tokens as they come.
 *
 * X1: only whole characters are told, and never a part of a stop text.
 * X2: what is told depends on the tokens alone, not on how they were grouped when they came.
 * X3: a token is told with the first character of its text, or later; what a stop text cut off is not told.
 */

import { StopScanner, StreamingDecoder, type Tokenizer } from "@hone/tokenizer";
import type { TokenChunk, TokenLogprob } from "../inference-engine.ts";

/** A token that could have been sampled. */
export interface SpelledToken {
  readonly id: number;
  /** What it spells by itself: U+FFFD where it is a part of a character. */
  readonly text: string;
  readonly logprob: number;
}

/** A sampled token that is part of the text. */
export interface TextToken extends SpelledToken {
  /** The most likely tokens in its place, as many as were asked for. */
  readonly top: readonly SpelledToken[];
  /** Position of its text in that of the choice, in UTF-16 units. */
  readonly offset: number;
}

export interface TextDelta {
  readonly text: string;
  readonly tokens: readonly TextToken[];
}

export interface ChoiceTextOptions {
  readonly tokenizer: Tokenizer;
  /** They end a generation, and are no part of its text. */
  readonly stopTokenIds: readonly number[];
  readonly stopTexts: readonly string[];
}

export class ChoiceText {
  readonly #tokenizer: Tokenizer;
  readonly #stopTokenIds: ReadonlySet<number>;
  readonly #decoder: StreamingDecoder;
  readonly #scanner: StopScanner;
  #untold: TextToken[] = [];
  #decodedLength = 0;
  #toldLength = 0;
  #tokenCount = 0;
  #isStopped = false;

  constructor({ tokenizer, stopTokenIds, stopTexts }: ChoiceTextOptions) {
    this.#tokenizer = tokenizer;
    this.#stopTokenIds = new Set(stopTokenIds);
    this.#decoder = new StreamingDecoder(tokenizer);
    this.#scanner = new StopScanner(stopTexts);
  }

  /** Whether a stop text was found; tokens that come after it are left out. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Tokens sampled up to the end, the stop token or those of the stop text included. */
  get tokenCount(): number {
    return this.#tokenCount;
  }

  push({ ids, logprobs, topLogprobs }: TokenChunk): TextDelta {
    let text = "";
    for (const [i, id] of ids.entries()) {
      if (this.#isStopped) break;
      text += this.#pushOne({ id, logprob: logprobs[i]! }, topLogprobs?.[i] ?? []);
    }
    return this.#tell(text);
  }

  /** No token comes any more. */
  end(): TextDelta {
    if (this.#isStopped) return this.#tell("");
    const scanned = this.#scanner.push(this.#decoder.flush());
    this.#isStopped = scanned.isStopped;
    const text = scanned.isStopped ? scanned.text : scanned.text + this.#scanner.flush();
    const delta = this.#tell(text);
    const rest = this.#isStopped ? [] : this.#untold;
    this.#untold = [];
    return { text: delta.text, tokens: [...delta.tokens, ...rest] };
  }

  #pushOne(token: TokenLogprob, top: readonly TokenLogprob[]): string {
    const { id } = token;
    this.#tokenCount++;
    if (this.#stopTokenIds.has(id)) return "";
    const spell = (one: TokenLogprob) => ({ ...one, text: this.#tokenizer.decode([one.id]) });
    this.#untold.push({ ...spell(token), top: top.map(spell), offset: this.#decodedLength });
    if (this.#tokenizer.isSpecial(id)) return "";
    const piece = this.#decoder.push(id);
    this.#decodedLength += piece.length;
    const { text, isStopped } = this.#scanner.push(piece);
    this.#isStopped = isStopped;
    return text;
  }

  /** X3 */
  #tell(text: string): TextDelta {
    this.#toldLength += text.length;
    const firstUntold = this.#untold.findIndex(({ offset }) => offset >= this.#toldLength);
    const count = firstUntold < 0 ? this.#untold.length : firstUntold;
    return { text, tokens: this.#untold.splice(0, count) };
  }
}
