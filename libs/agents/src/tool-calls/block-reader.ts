/**
 * Reads answers whose calls are between marks, from a stream of texts that may be cut anywhere.
 *
 * B1: text is returned as soon as it can no longer be the beginning of a mark.
 * B2: the places where the stream is cut do not matter: after neighbouring texts are joined, the pieces are the same.
 * B3: everything between the marks of thoughts, `<think>` and `</think>` in most formats, is text.
 */

import { type AnswerPiece, type AnswerReader, invalidCall, type WrittenCall } from "./tool-call.ts";

/** How a format marks its calls. */
export interface BlockGrammar {
  readonly blocks: readonly {
    readonly begin: string;
    /** Undefined = the block ends at the next `begin` or at the end of the answer. */
    readonly end: string | undefined;
  }[];
  /** Marks around all calls, which are skipped. */
  readonly ignored?: readonly string[];
  /** Marks around thoughts. @default `<think>` and `</think>` */
  readonly thoughts?: { readonly begin: string; readonly end: string };
  /** Reads the calls of one block; `begin` is the mark that opened it. */
  readonly read: (body: string, begin: string) => readonly WrittenCall[];
}

const THINK = { begin: "<think>", end: "</think>" } as const;

type State =
  | { readonly kind: "outside" }
  | { readonly kind: "thinking" }
  | { readonly kind: "inside"; readonly begin: string; readonly end: string | undefined };

export class BlockReader implements AnswerReader {
  readonly #grammar: BlockGrammar;
  #state: State = { kind: "outside" };
  #pending = "";

  constructor(grammar: BlockGrammar) {
    this.#grammar = grammar;
  }

  push(text: string): AnswerPiece[] {
    this.#pending += text;
    const pieces: AnswerPiece[] = [];
    while (this.#step(pieces));
    return pieces;
  }

  end(): AnswerPiece[] {
    const pieces: AnswerPiece[] = [];
    const rest = this.#pending;
    this.#pending = "";
    const state = this.#state;
    this.#state = { kind: "outside" };
    if (state.kind !== "inside") addText(pieces, rest);
    else if (state.end === undefined) pieces.push(...this.#grammar.read(rest, state.begin));
    else pieces.push(invalidCall(`${state.begin}${rest}`, `is not closed by ${state.end}`));
    return pieces;
  }

  /** @returns whether there may be more to do. */
  #step(pieces: AnswerPiece[]): boolean {
    const state = this.#state;
    switch (state.kind) {
      case "outside":
        return this.#readOutside(pieces);
      case "thinking":
        return this.#readThought(pieces);
      case "inside":
        return this.#readInside(pieces, state);
    }
  }

  #readOutside(pieces: AnswerPiece[]): boolean {
    const { blocks, ignored = [], thoughts = THINK } = this.#grammar;
    const marks = [thoughts.begin, ...blocks.map(({ begin }) => begin), ...ignored];
    const found = firstOf(this.#pending, marks);
    if (found === undefined) {
      this.#giveText(pieces, this.#pending.length - lengthOfBeginning(this.#pending, marks));
      return false;
    }
    this.#giveText(pieces, found.at);
    if (found.mark === thoughts.begin) {
      this.#giveText(pieces, thoughts.begin.length);
      this.#state = { kind: "thinking" };
      return true;
    }
    this.#pending = this.#pending.slice(found.mark.length);
    const block = blocks.find(({ begin }) => begin === found.mark);
    if (block !== undefined) this.#state = { kind: "inside", ...block };
    return true;
  }

  #readThought(pieces: AnswerPiece[]): boolean {
    const { end } = this.#grammar.thoughts ?? THINK;
    const at = this.#pending.indexOf(end);
    if (at < 0) {
      this.#giveText(pieces, this.#pending.length - lengthOfBeginning(this.#pending, [end]));
      return false;
    }
    this.#giveText(pieces, at + end.length);
    this.#state = { kind: "outside" };
    return true;
  }

  #readInside(
    pieces: AnswerPiece[],
    { begin, end }: { readonly begin: string; readonly end: string | undefined },
  ): boolean {
    const mark = end ?? begin;
    const at = this.#pending.indexOf(mark);
    if (at < 0) return false;
    pieces.push(...this.#grammar.read(this.#pending.slice(0, at), begin));
    this.#pending = this.#pending.slice(at + mark.length);
    if (end !== undefined) this.#state = { kind: "outside" };
    return true;
  }

  #giveText(pieces: AnswerPiece[], length: number): void {
    addText(pieces, this.#pending.slice(0, length));
    this.#pending = this.#pending.slice(length);
  }
}

function addText(pieces: AnswerPiece[], text: string): void {
  if (text !== "") pieces.push({ kind: "text", text });
}

function firstOf(text: string, marks: readonly string[]): { at: number; mark: string } | undefined {
  let best: { at: number; mark: string } | undefined;
  for (const mark of marks) {
    const at = text.indexOf(mark);
    if (at >= 0 && (best === undefined || at < best.at)) best = { at, mark };
  }
  return best;
}

/** How many characters at the end of a text may be the beginning of a mark (B1). */
export function lengthOfBeginning(text: string, marks: readonly string[]): number {
  let longest = 0;
  for (const mark of marks) {
    for (let length = Math.min(mark.length - 1, text.length); length > longest; length--) {
      if (mark.startsWith(text.slice(text.length - length))) {
        longest = length;
        break;
      }
    }
  }
  return longest;
}
