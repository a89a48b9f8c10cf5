/**
 * Reads the call of a Gemma model: `call:f{city:<|"|>Paris<|"|>,days:3,units:[<|"|>C<|"|>]}`.
 *
 * Keys are bare, texts stand between marks, and nothing within a text is escaped. Gemma 4 has `<|"|>` as the mark, and
 * FunctionGemma, an earlier model, has `<escape>` (https://ai.google.dev/gemma/docs, pages on function calling).
 */

import { ScanError, TextScanner } from "./text-scanner.ts";
import { invalidCall, type WrittenCall } from "./tool-call.ts";

export type GemmaTextMark = '<|"|>' | "<escape>";

/** Deepest nesting of lists and objects. */
const MAX_DEPTH = 64;

export function gemmaCall(body: string, mark: GemmaTextMark): WrittenCall {
  try {
    return new GemmaParser(body, mark).call();
  } catch (error) {
    if (!(error instanceof ScanError)) throw error;
    return invalidCall(body, error.message);
  }
}

class GemmaParser extends TextScanner {
  readonly #mark: string;

  constructor(text: string, mark: GemmaTextMark) {
    super(text, "is no call like call:NAME{KEY:VALUE}");
    this.#mark = mark;
  }

  call(): WrittenCall {
    if (this.match(/call:/y) === undefined) this.fail('"call:"');
    const name = this.match(/[\w.-]+/y);
    if (name === undefined) this.fail("the name of a tool");
    const given = this.#object(0);
    this.expectEnd("call");
    return { kind: "call", name, arguments: given };
  }

  #object(depth: number): Readonly<Record<string, unknown>> {
    const entries = this.listOf("{", "}", (): [string, unknown] => {
      const key = this.#isAtText() ? this.#markedText() : this.match(/[^\s:,{}[\]]+/y);
      if (key === undefined) this.fail("the name of an argument");
      this.expect(":");
      return [key, this.#value(depth + 1)];
    });
    return Object.fromEntries(entries);
  }

  #value(depth: number): unknown {
    if (depth > MAX_DEPTH) this.fail(`at most ${MAX_DEPTH} levels`);
    this.skipSpace();
    if (this.#isAtText()) return this.#markedText();
    const character = this.text[this.at];
    if (character === "{") return this.#object(depth);
    if (character === "[") return this.listOf("[", "]", () => this.#value(depth + 1));
    const bare = this.match(/[^,{}[\]]+/y)?.trim();
    if (bare === undefined || bare === "") this.fail("a value");
    return bareValue(bare);
  }

  #isAtText(): boolean {
    this.skipSpace();
    return this.text.startsWith(this.#mark, this.at);
  }

  #markedText(): string {
    const begin = this.at + this.#mark.length;
    const end = this.text.indexOf(this.#mark, begin);
    if (end < 0) this.fail(`a second ${this.#mark}`);
    this.at = end + this.#mark.length;
    return this.text.slice(begin, end);
  }
}

/** A text without marks is kept as it stands, as models sometimes forget them. */
function bareValue(bare: string): unknown {
  if (bare === "true" || bare === "True") return true;
  if (bare === "false" || bare === "False") return false;
  if (bare === "null" || bare === "None") return null;
  return /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/.test(bare) ? Number(bare) : bare;
}
