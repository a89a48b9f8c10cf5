/**
 * Reads calls that are written in Python, with arguments by name and literals as values:
 * `[get_weather(city="Paris", days=3), now()]`. Also reads such a literal alone.
 */

import { ScanError, TextScanner } from "./text-scanner.ts";
import { invalidCall, type WrittenCall } from "./tool-call.ts";

/** Deepest nesting of lists and objects. */
const MAX_DEPTH = 64;
const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  "\\": "\\",
  "'": "'",
  '"': '"',
  "\n": "",
};

/** @returns undefined when the text does not begin like a list of calls. */
export function pythonCalls(text: string): readonly WrittenCall[] | undefined {
  if (!/^\s*\[\s*[A-Za-z_][\w.]*\s*\(/.test(text)) return undefined;
  try {
    return new CallParser(text).calls();
  } catch (error) {
    if (!(error instanceof ScanError)) throw error;
    return [invalidCall(text, error.message)];
  }
}

/** @returns undefined when the text is no literal; `None` is null. */
export function pythonValue(text: string): unknown {
  try {
    return new CallParser(text).literal();
  } catch (error) {
    if (!(error instanceof ScanError)) throw error;
    return undefined;
  }
}

class CallParser extends TextScanner {
  constructor(text: string) {
    super(text, "is no list of calls");
  }

  calls(): WrittenCall[] {
    const calls = this.listOf("[", "]", () => this.#call());
    this.expectEnd("calls");
    return calls;
  }

  literal(): unknown {
    const value = this.#value(0);
    this.expectEnd("value");
    return value;
  }

  #call(): WrittenCall {
    const name = this.match(/[A-Za-z_][\w.]*/y) ?? this.fail("the name of a tool");
    const given = this.listOf("(", ")", () => {
      const key = this.match(/[A-Za-z_]\w*/y) ?? this.fail("the name of an argument");
      this.expect("=");
      return [key, this.#value(0)] as const;
    });
    return { kind: "call", name, arguments: Object.fromEntries(given) };
  }

  #value(depth: number): unknown {
    if (depth > MAX_DEPTH) this.fail(`at most ${MAX_DEPTH} levels`);
    this.skipSpace();
    const character = this.text[this.at];
    if (character === "[") return this.listOf("[", "]", () => this.#value(depth + 1));
    if (character === "(") return this.listOf("(", ")", () => this.#value(depth + 1));
    if (character === "{") return Object.fromEntries(this.listOf("{", "}", () => this.#entry(depth + 1)));
    if (character === '"' || character === "'") return this.#string();
    const word = this.match(/[A-Za-z_]\w*/y);
    if (word !== undefined) return this.#constant(word);
    const number = this.match(/[-+]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?/y);
    return number === undefined ? this.fail("a value") : Number(number.replaceAll("_", ""));
  }

  #entry(depth: number): readonly [string, unknown] {
    const key = this.#value(depth);
    if (typeof key !== "string") this.fail("a text as key");
    this.expect(":");
    return [key, this.#value(depth)];
  }

  #constant(word: string): unknown {
    if (word === "True" || word === "true") return true;
    if (word === "False" || word === "false") return false;
    if (word === "None" || word === "null") return null;
    this.fail(`a value instead of ${word}`);
  }

  #string(): string {
    const one = this.text[this.at] ?? "";
    const quote = this.text.startsWith(one.repeat(3), this.at) ? one.repeat(3) : one;
    this.at += quote.length;
    let value = "";
    while (!this.text.startsWith(quote, this.at)) {
      const character = this.text[this.at++];
      if (character === undefined) this.fail("the end of a text");
      value += character === "\\" ? this.#escape() : character;
    }
    this.at += quote.length;
    return value;
  }

  #escape(): string {
    const character = this.text[this.at++] ?? "";
    const digits = { x: 2, u: 4, U: 8 }[character];
    if (digits === undefined) return ESCAPES[character] ?? `\\${character}`;
    const code = Number.parseInt(this.text.slice(this.at, this.at + digits), 16);
    if (!(code >= 0 && code <= 0x10ffff)) this.fail("the code of a character");
    this.at += digits;
    return String.fromCodePoint(code);
  }
}
