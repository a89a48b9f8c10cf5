/**
 * Reads the call of a Gemma model: `call:f{city:<|"|>Paris<|"|>,days:3,units:[<|"|>C<|"|>]}`.
 *
 * Keys are bare, texts stand between marks, and nothing within a text is escaped. Gemma 4 has `<|"|>` as the mark, and
 * FunctionGemma, an earlier model, has `<escape>` (https://ai.google.dev/gemma/docs, pages on function calling).
 */

import { invalidCall, type WrittenCall } from "./tool-call.ts";

export type GemmaTextMark = '<|"|>' | "<escape>";

/** Deepest nesting of lists and objects. */
const MAX_DEPTH = 64;

/** Says where and why a text is not a call. */
class GemmaSyntaxError extends Error {}

export function gemmaCall(body: string, mark: GemmaTextMark): WrittenCall {
  try {
    return new GemmaParser(body, mark).call();
  } catch (error) {
    if (!(error instanceof GemmaSyntaxError)) throw error;
    return invalidCall(body, error.message);
  }
}

class GemmaParser {
  readonly #text: string;
  readonly #mark: string;
  #at = 0;

  constructor(text: string, mark: GemmaTextMark) {
    this.#text = text;
    this.#mark = mark;
  }

  call(): WrittenCall {
    if (this.#match(/call:/y) === undefined) throw this.#error('"call:"');
    const name = this.#match(/[\w.-]+/y);
    if (name === undefined) throw this.#error("the name of a tool");
    const given = this.#object(0);
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#error("the end of the call");
    return { kind: "call", name, arguments: given };
  }

  #object(depth: number): Readonly<Record<string, unknown>> {
    const entries = this.#listOf("{", "}", (): [string, unknown] => {
      const key = this.#isAtText() ? this.#markedText() : this.#match(/[^\s:,{}[\]]+/y);
      if (key === undefined) throw this.#error("the name of an argument");
      this.#expect(":");
      return [key, this.#value(depth + 1)];
    });
    return Object.fromEntries(entries);
  }

  #value(depth: number): unknown {
    if (depth > MAX_DEPTH) throw this.#error(`at most ${MAX_DEPTH} levels`);
    this.#skipSpace();
    if (this.#isAtText()) return this.#markedText();
    const character = this.#text[this.#at];
    if (character === "{") return this.#object(depth);
    if (character === "[") return this.#listOf("[", "]", () => this.#value(depth + 1));
    const bare = this.#match(/[^,{}[\]]+/y)?.trim();
    if (bare === undefined || bare === "") throw this.#error("a value");
    return bareValue(bare);
  }

  #isAtText(): boolean {
    this.#skipSpace();
    return this.#text.startsWith(this.#mark, this.#at);
  }

  #markedText(): string {
    const begin = this.#at + this.#mark.length;
    const end = this.#text.indexOf(this.#mark, begin);
    if (end < 0) throw this.#error(`a second ${this.#mark}`);
    this.#at = end + this.#mark.length;
    return this.#text.slice(begin, end);
  }

  /** Elements between two marks, separated by commas. */
  #listOf<T>(open: string, close: string, element: () => T): T[] {
    this.#expect(open);
    const elements: T[] = [];
    while (true) {
      this.#skipSpace();
      if (this.#text[this.#at] === close) break;
      elements.push(element());
      this.#skipSpace();
      if (this.#text[this.#at] !== ",") break;
      this.#at++;
    }
    this.#expect(close);
    return elements;
  }

  #expect(mark: string): void {
    this.#skipSpace();
    if (this.#text[this.#at] !== mark) throw this.#error(`"${mark}"`);
    this.#at++;
  }

  #match(pattern: RegExp): string | undefined {
    this.#skipSpace();
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #skipSpace(): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at++;
  }

  #error(expected: string): GemmaSyntaxError {
    return new GemmaSyntaxError(
      `is no call like call:NAME{KEY:VALUE} (${expected} is expected at character ${this.#at + 1})`,
    );
  }
}

/** A text without marks is kept as it stands, as models sometimes forget them. */
function bareValue(bare: string): unknown {
  if (bare === "true" || bare === "True") return true;
  if (bare === "false" || bare === "False") return false;
  if (bare === "null" || bare === "None") return null;
  return /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/.test(bare) ? Number(bare) : bare;
}
