/**
 * Reads answers that consist of calls from their first character on, without a mark before them; any other answer goes to
 * another reader. Whether an answer consists of calls is known only at its end.
 */

import type { AnswerPiece, AnswerReader, WrittenCall } from "./tool-call.ts";

type State =
  | { readonly kind: "undecided"; readonly text: string }
  | { readonly kind: "leading"; readonly text: string }
  | { readonly kind: "other" };

export class LeadingReader implements AnswerReader {
  readonly #first: string;
  readonly #read: (text: string) => readonly WrittenCall[] | undefined;
  readonly #other: AnswerReader;
  #state: State = { kind: "undecided", text: "" };

  /**
   * @param first the character that such answers begin with.
   * @param read reads the calls; it returns undefined when the answer turns out to be text.
   */
  constructor(
    first: string,
    read: (text: string) => readonly WrittenCall[] | undefined,
    other: AnswerReader,
  ) {
    this.#first = first;
    this.#read = read;
    this.#other = other;
  }

  push(text: string): AnswerPiece[] {
    const state = this.#state;
    if (state.kind === "other") return this.#other.push(text);
    const all = state.text + text;
    const begin = all.trimStart();
    if (begin === "") {
      this.#state = { kind: "undecided", text: all };
      return [];
    }
    if (begin.startsWith(this.#first)) {
      this.#state = { kind: "leading", text: all };
      return [];
    }
    this.#state = { kind: "other" };
    return this.#other.push(all);
  }

  end(): AnswerPiece[] {
    const state = this.#state;
    this.#state = { kind: "other" };
    if (state.kind === "other") return this.#other.end();
    const calls = state.kind === "leading" ? this.#read(state.text) : undefined;
    if (calls !== undefined) return [...calls];
    return state.text === "" ? [] : [{ kind: "text", text: state.text }];
  }
}
